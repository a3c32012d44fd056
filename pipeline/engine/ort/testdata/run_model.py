"""Checks small.onnx in the given folder with onnx.checker and runs it with
onnxruntime on query.json; prints the outputs as JSON."""

import json
import pathlib
import sys

import numpy
import onnx
import onnxruntime

folder = pathlib.Path(sys.argv[1])
model = onnx.load(folder / "small.onnx")
onnx.checker.check_model(model, full_check=True)
query = json.loads((folder / "query.json").read_text())
session = onnxruntime.InferenceSession(folder / "small.onnx", providers=["CPUExecutionProvider"])
answer, mean = session.run(
    ["answer", "mean"],
    {
        "image": numpy.array(query["image"], numpy.float32).reshape(query["image_dims"]),
        "time": numpy.array(query["time"], numpy.float32),
    },
)
json.dump({"Answer": answer.ravel().tolist(), "Mean": mean.ravel().tolist()}, sys.stdout)
