#!/usr/bin/env python3
"""Receive Lacuna's products from Kafka as files, with confluent-kafka.

    consume.py BROKERS DIR [--prefix lacuna] [--group NAME] [--once]

An event on <prefix>.events says what a product is and where its parts lie on
<prefix>.data. For each event the parts are read, joined, checked against the
SHA-256 of the event and written to DIR/DATASET, with the event beside them as
NAME.json. A revision that is there already, as after a replay, is passed over.
An event without a value retracts a product. The offset is committed when the
file is in place, so that a crash repeats a product and never loses one.

A product that cannot be had is noted with the reason in DIR/.set-aside.jsonl,
and the next one follows. Brokers that are away are waited for.
"""
import argparse
import hashlib
import json
import os
import re
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

LONGEST_NAME = 224  # bytes: file systems take 255, and side files need some
LONGEST_LIST = 16 << 20  # bytes of the list of what was set aside
# What a broker says of parts that it does not have, or does not give to anybody.
GONE = {
    KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION, KafkaError.TOPIC_EXCEPTION,
}


class Missing(Exception):
    """The product of an event cannot be had, now or later."""


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
            try:
                handle(message, args)
            # What an event says may be anything; a full disk is for an operator.
            except (Missing, LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as reason:
                set_aside(args.dir, message, reason)
            events.commit(message=message, asynchronous=False)
    finally:
        events.close()


def handle(message, args):
    headers = {name: value.decode() for name, value in message.headers() or []}
    kind = headers.get("ce_type")
    if kind not in ("lacuna.product.published.v1", "lacuna.product.retracted.v1"):
        return
    # The name comes from the network: nothing but a name in this folder.
    name = headers["ce_subject"]
    if name[:1] in ("", ".") or re.search(r"[/\\\0]", name):
        raise Missing("the file name %r cannot be one" % name)
    dataset = headers["ce_dataset"]
    if dataset[:1] in ("", ".") or re.search(r"[/\\\0]", dataset):
        raise Missing("the dataset %r cannot be a folder" % dataset)
    folder = os.path.join(args.dir, file_name(dataset))
    path = os.path.join(folder, file_name(name))
    if kind == "lacuna.product.retracted.v1":
        for file in (path, path + ".json"):
            if os.path.isfile(file):
                os.remove(file)
        print("retracted", headers["ce_id"], headers["ce_why"], flush=True)
        return
    event = json.loads(message.value())
    if event["data"]["topic"] != args.prefix + ".data":
        raise Missing("its parts lie on another topic")
    if held(path, event):
        return
    os.makedirs(folder, exist_ok=True)
    content = collect(args.brokers, headers["ce_id"], event)
    for file, data in ((path, content), (path + ".json", message.value())):
        with open(file + ".part", "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(file + ".part", file)
    print("received", headers["ce_id"], path, flush=True)


def held(path, event):
    """Tell whether this revision is there already, with these bytes."""
    try:
        with open(path + ".json", encoding="utf-8") as file:
            before = json.load(file)
        with open(path, "rb") as file:
            content = file.read()
    except (OSError, ValueError):
        return False
    same = isinstance(before, dict) and before.get("granule") == event["granule"] and before.get("revision") == event["revision"]
    return same and hashlib.sha256(content).hexdigest() == event["file"]["sha256"]


def collect(brokers, product, event):
    """Return the bytes of a product; Missing where the topic does not have them."""
    place, size = event["data"], event["file"]["size"]
    first, last, wanted = int(place["first_offset"]), int(place["last_offset"]), int(place["parts"])
    if not (0 <= first <= last < 2**63 - 1 and 1 <= wanted <= last - first + 1):
        raise Missing("its parts cannot lie where it says")
    partition = TopicPartition(place["topic"], place["partition"], first)
    data = Consumer({
        "bootstrap.servers": brokers,
        "group.id": "not used: partitions are assigned by hand",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
    })
    parts, silent = {}, 0  # parts by number: one may have been sent twice
    try:
        data.assign([partition])
        while len(parts) < wanted and sum(map(len, parts.values())) <= size:
            message = data.poll(5.0)
            if message is None:
                silent = silent + 1 if answers(data, partition) else 0
                if silent == 3:
                    raise Missing("its parts cannot be read, though the broker answers")
                continue
            silent = 0
            if message.error() and message.error().code() not in GONE:
                continue  # the broker is away
            if message.error() or message.offset() > last:
                break
            headers = dict(message.headers() or [])
            if headers.get("id") == product.encode() and 0 <= int(headers["part"]) < wanted:
                parts[int(headers["part"])] = message.value() or b""
    except KafkaException as reason:
        raise Missing(str(reason)) from reason
    finally:
        data.close()
    content = b"".join(parts[n] for n in sorted(parts))
    if len(parts) < wanted or hashlib.sha256(content).hexdigest() != event["file"]["sha256"]:
        raise Missing("%d of its %d parts are there, or they are damaged" % (len(parts), wanted))
    return content


def answers(data, partition):
    """Tell whether the leader of a partition is there."""
    try:
        data.get_watermark_offsets(partition, timeout=10.0)
        return True
    except KafkaException as reason:
        return reason.args[0].code() in GONE


def file_name(name):
    """Return the name to keep a product under: as FileName of publish/kafka/consumer."""
    odd = re.compile(r"[\x00-\x1f\x7f]")
    whole = name.encode()
    if len(whole) <= LONGEST_NAME and not odd.search(name) and not re.search(r"~[0-9a-f]{64}(\.[^.]*)?\Z", name):
        return name
    plain = odd.sub("_", name)
    dot = plain.rfind(".")
    ending = plain[dot:] if dot >= 0 and len(plain[dot:].encode()) <= 16 else ""
    tail = "~" + hashlib.sha256(whole).hexdigest() + ending
    stem = plain[:len(plain) - len(ending)].encode()[:LONGEST_NAME - len(tail.encode())]
    return stem.decode(errors="ignore") + tail


def set_aside(folder, message, reason):
    """Note an event that cannot be completed, so that the next one follows."""
    headers = {name: repr(value)[:1000] for name, value in message.headers() or []}
    line = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "partition": message.partition(), "offset": message.offset(),
        "id": headers.get("ce_id", ""), "file": headers.get("ce_subject", ""), "reason": repr(reason)[:1000],
    }
    path = os.path.join(folder, ".set-aside.jsonl")
    if os.path.exists(path) and os.path.getsize(path) > LONGEST_LIST:
        os.replace(path, os.path.join(folder, ".set-aside.old.jsonl"))
    with open(path, "a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
    print("missing", json.dumps(line), file=sys.stderr)


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
