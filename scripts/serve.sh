# SPDX-License-Identifier: Apache-2.0
# What scripts/serve-demo and examples/platform/run share: they read it. $fds is the command, $out the folder.

# books ORIGIN MONEY: a ledger, a customer with money, keys and logins, once. Reads lines "name role account". In a
# subshell, for its umask: nobody else may read keys and passwords.
books() (
    umask 077
    [ ! -e "$out/logins.txt" ] || return 0
    rm -f "$out/a.ledger" "$out/a.ledger.key" "$out/keys.jsonl" "$out/customer.key" "$out/operator.key"
    "$fds" ledger init "$out/a.ledger" --origin "$1" -q > "$out/vkey"
    "$fds" ledger topup "$out/a.ledger" acme "$2" --new -q
    "$fds" serve key "$out/keys.jsonl" --account acme -q > "$out/customer.key"
    "$fds" serve key "$out/keys.jsonl" --role operator --account olga -q > "$out/operator.key"
    while read -r name role account; do
        password=$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
        printf '%s\n' "$password" | "$fds" serve login "$out/keys.jsonl" --name "$name" --role "$role" --account "$account" -q
        printf '%-8s %-9s %-10s %s\n' "$name" "$role" "$account" "$password"
    done > "$out/logins.new"
    mv "$out/logins.new" "$out/logins.txt"
)

# logins PORT: says where the page is, and who may log in
logins() {
    printf '\nThe page is at http://127.0.0.1:%s/. Log in as\n\n' "$1"
    sed 's/^/  /; 1i\  name     role      account    password' "$out/logins.txt"
    printf "\nA customer's program asks with the key in %s/customer.key (docs/serve.md). Ctrl-C ends the server.\n\n" "$out"
}

# serve PORT [OPTION...]: in place of this shell, until it is ended
serve() {
    port=$1
    shift
    exec "$fds" serve --model "mnist=$out/mnist.run" --ledger "$out/a.ledger" --keys "$out/keys.jsonl" \
        --price 0.01 --fee 0.1 --audit-share 0.2 --port "$port" --quiet "$@"
}
