#!/usr/bin/env python3
"""Receive Lacuna's products from Kafka as files, with confluent-kafka.

    consume.py BROKERS DIR [--prefix lacuna] [--group NAME] [--once]

An event on <prefix>.events says what a product is and where its parts lie on
<prefix>.data. For each event the parts are read, joined, checked against the
SHA-256 of the event and written to DIR. An event without a value retracts a
product. The offset is committed when the file is in place, so that a crash
repeats a product and never loses one.
"""
import argparse
import hashlib
import json
import os
import sys

from confluent_kafka import Consumer, KafkaError, TopicPartition


def main():
    args = arguments()
    os.makedirs(args.dir, exist_ok=True)
    events = Consumer({
        "bootstrap.servers": args.brokers,
        "group.id": args.group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    })
    ended, assigned = set(), set()
    events.subscribe([args.prefix + ".events"], on_assign=lambda _, given: assigned.update(p.partition for p in given))
    try:
        while not (args.once and assigned and ended >= assigned):
            message = events.poll(1.0)
            if message is None:
                continue
            if message.error():
                if message.error().code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                else:
                    print(message.error(), file=sys.stderr)
                continue
            handle(message, args)
            events.commit(message=message, asynchronous=False)
    finally:
        events.close()


def handle(message, args):
    headers = {name: value.decode() for name, value in message.headers() or []}
    # The name comes from the network: nothing but a name in this folder.
    path = os.path.join(args.dir, os.path.basename(headers.get("ce_subject", "")))
    if headers.get("ce_type") == "lacuna.product.retracted.v1":
        if os.path.isfile(path):
            os.remove(path)
        print("retracted", headers["ce_id"], headers["ce_why"], flush=True)
        return
    if headers.get("ce_type") != "lacuna.product.published.v1":
        return
    event = json.loads(message.value())
    content = collect(args.brokers, headers["ce_id"], event)
    if content is None:
        print("missing", headers["ce_id"], file=sys.stderr)
        return
    with open(path + ".part", "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".part", path)
    print("received", headers["ce_id"], path, flush=True)


def collect(brokers, product, event):
    """Return the bytes of a product, or None where the topic no longer has them."""
    place = event["data"]
    data = Consumer({
        "bootstrap.servers": brokers,
        "group.id": "not used: partitions are assigned by hand",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
    })
    data.assign([TopicPartition(place["topic"], place["partition"], place["first_offset"])])
    parts = {}  # by number: a part may have been sent twice
    try:
        while len(parts) < place["parts"]:
            message = data.poll(10.0)
            if message is None:
                continue  # the broker is away
            if message.error() or message.offset() > place["last_offset"]:
                break
            headers = dict(message.headers())
            if headers["id"].decode() == product:
                parts[int(headers["part"])] = message.value() or b""
    finally:
        data.close()
    content = b"".join(parts[n] for n in sorted(parts))
    if hashlib.sha256(content).hexdigest() != event["file"]["sha256"]:
        return None
    return content


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("brokers")
    parser.add_argument("dir")
    parser.add_argument("--prefix", default="lacuna")
    parser.add_argument("--group", default="lacuna-python")
    parser.add_argument("--once", action="store_true", help="stop at the end of the topic")
    return parser.parse_args()


if __name__ == "__main__":
    main()
