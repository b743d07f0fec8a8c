"""All that kwokctl asks of kubectl: `kubectl --kubeconfig FILE get --raw PATH`, to see whether the API server answers.

With this a rehearsal needs no kubectl on the machine: kwokctl would download one.
"""

import ssl
import sys
import urllib.request
from pathlib import Path

import yaml


def main(arguments: list[str]) -> int:
    _, kubeconfig, _, _, path = arguments
    config = yaml.safe_load(Path(kubeconfig).read_text(encoding="utf-8"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
    tls.load_cert_chain(user["client-certificate"], user["client-key"])
    try:
        with urllib.request.urlopen(cluster["server"] + path, context=tls, timeout=5) as answer:
            sys.stdout.write(answer.read().decode())
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
