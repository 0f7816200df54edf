"""A customer's program: asks the server of `make serve-demo` for a prediction, and who is paid for it."""
import json
import urllib.request

key = open("build/serve-demo/customer.key").read().strip()
body = open("examples/digit.json", "rb").read()
request = urllib.request.Request("http://127.0.0.1:8080/v2/models/mnist.explain/infer", body,
                                 {"Authorization": f"Bearer {key}", "Idempotency-Key": "order-17"})
outputs = json.load(urllib.request.urlopen(request))["outputs"]
answer = {output["name"]: output["data"] for output in outputs}
print(f"label {answer['label'][0]}, entry {answer['receipt'][0]} of the ledger")
for share, payee in sorted(zip(answer["shares"], answer["payees"]), reverse=True)[:3]:
    print(f"{payee} is paid {share:.1%}")
