#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A worker for fds in shell: the commonest class of the coalition's samples, for every input. Of
# equally common ones it takes the first (docs/external.md).
#     fds value DATA --utility "command:sh examples/workers/majority.sh"
set -eu
export LC_ALL=C

number() { head -c 8 | od -An -v -tu8 | tr -d ' '; } # of 8 bytes

# A message: its header goes to $header, its tensor, numbers of 4 bytes, to $numbers.
receive() {
    length=$(number)
    [ "$length" ] || exit 0 # no more messages
    size=$(number)
    header=$(head -c "$size")
    numbers=$(head -c $((length - 8 - size)) | od -An -v -td4)
}

field() { printf %s "$header" | sed 's/.*"'"$1"'":"\([^"]*\)".*/\1/'; }

# The 8 bytes of a number, as escapes of printf.
bytes() { awk -v n="$1" 'BEGIN { for (i = 0; i < 8; i++) { printf "\\%03o", n % 256; n = int(n / 256) } }'; }

# send HEADER BYTES: the bytes are escapes of four characters each.
send() { printf "$(bytes $((8 + ${#1} + ${#2} / 4)))$(bytes ${#1})%s$2" "$1"; }

receive
folder=$(field folder) inputs=$(field inputs) classes=$(field classes)
labels=$(tail -c +129 "$folder/labels.npy" | od -An -v -td4) # numbers begin at byte 128, from 0
send '{"__metadata__":{"type":"ready","protocol":"1","name":"majority","fingerprint":"1"}}' ''
shape='"dtype":"F32","shape":['$inputs,$classes'],"data_offsets":[0,'$((inputs * classes * 4))']'
while receive; do
    rows=$(printf '%s\n\n%s' "$labels" "$numbers" | awk -v classes="$classes" -v inputs="$inputs" '
        NF == 0 { is_coalition = 1 }
        { for (i = 1; i <= NF; i++) if (is_coalition) count[label[$i]]++; else label[n++] = $i }
        END {
            for (y = 0; y < classes; y++) if (count[y] > count[best + 0]) best = y
            one = "\\000\\000\\200\\077" # the number 1; 0 is four times \000
            for (i = 0; i < inputs * classes; i++)
                printf "%s", i % classes == best + 0 ? one : "\\000\\000\\000\\000"
        }')
    send '{"__metadata__":{"type":"answer","id":"'"$(field id)"'"},"probabilities":{'"$shape"'}}' "$rows"
done
