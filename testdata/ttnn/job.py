"""A ttnn program that does what it is told, one step at a time.

Reads commands as lines of JSON from standard input and answers each with one
line of JSON on standard output: what it holds, by its own account.

  {"do": "open", "device": 0, "l1_small": 32768, "trace": 1048576}
  {"do": "open", "mesh": [8, 4]}
  {"do": "alloc", "name": "a", "pool": "dram", "bytes": 2097152}
  {"do": "alloc", "name": "b", "pool": "dram", "bytes": 2097152, "thread": true}
  {"do": "add", "name": "c", "of": ["a", "a"]}
  {"do": "matmul", "name": "d", "of": ["x", "y"]}
  {"do": "free", "name": "a"}
  {"do": "view"}          the allocator's own view, where the release offers it
  {"do": "close"}         {"do": "close", "keep": true}         {"do": "exit"}

Sizes are in bytes on one chip, in whole tiles (2048 bytes); l1_small goes one
tile to a core. A mesh holds the same on each of its chips.
"""

import json
import os
import sys
import threading

# Answers go to what was standard output; everything else that writes there,
# tt-metal's log above all, goes to standard error.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import ttnn  # noqa: E402

TILE = 32 * 32 * 2

POOLS = {
    "dram": ttnn.BufferType.DRAM,
    "l1": ttnn.BufferType.L1,
    "l1_small": ttnn.BufferType.L1_SMALL,
    "trace": ttnn.BufferType.TRACE,
}


class Job:
    def __init__(self):
        self.device = None
        self.is_mesh = False
        self.chips = 0
        self.tensors = {}  # name -> (tensor, pool, bytes)

    def held(self):
        sums = dict.fromkeys(POOLS, 0)
        for _, pool, size in self.tensors.values():
            sums[pool] += size
        return sums

    def open(self, device=0, mesh=None, l1_small=0, trace=0):
        self.is_mesh = mesh is not None
        if self.is_mesh:
            self.device = ttnn.open_mesh_device(ttnn.MeshShape(*mesh), l1_small_size=l1_small, trace_region_size=trace)
            self.chips = self.device.get_num_devices()
        else:
            self.device = ttnn.open_device(device_id=device, l1_small_size=l1_small, trace_region_size=trace)
            self.chips = 1

    def alloc(self, name, pool, bytes, columns=0, thread=False):
        if bytes % TILE:
            raise ValueError(f"{bytes} bytes are not whole tiles of {TILE}")
        if not thread:
            self.make(name, pool, bytes, columns)
            return
        worker = threading.Thread(target=self.make, args=(name, pool, bytes, columns))
        worker.start()
        worker.join()
        if name not in self.tensors:
            raise RuntimeError("the thread could not allocate: see standard error")

    def make(self, name, pool, size, columns):
        rows, columns = 32, columns or size // 64
        if columns != size // 64:
            rows = size // 2 // columns
        memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.INTERLEAVED, POOLS[pool])
        if pool == "l1_small":
            cores = size // TILE
            rows, columns = 32 * cores, 32
            grid = self.device.compute_with_storage_grid_size()
            shards = ttnn.num_cores_to_corerangeset(cores, grid, True)
            spec = ttnn.ShardSpec(shards, (32, 32), ttnn.ShardOrientation.ROW_MAJOR)
            memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, POOLS[pool], spec)
        tensor = ttnn.empty([1, 1, rows, columns], ttnn.bfloat16, ttnn.TILE_LAYOUT, self.device, memory)
        self.tensors[name] = (tensor, pool, size)

    def run(self, op, name, of):
        (a, pool, _), (b, _, _) = self.tensors[of[0]], self.tensors[of[1]]
        result = op(a, b)
        rows, columns = result.shape[-2], result.shape[-1]
        self.tensors[name] = (result, pool, rows * columns * 2)

    def free(self, name):
        tensor, _, _ = self.tensors.pop(name)
        ttnn.deallocate(tensor)

    def view(self):
        """Bytes the allocator has given out, over all banks, per pool."""
        view = {}
        for name, pool in POOLS.items():
            v = ttnn.get_memory_view(self.device, pool)
            view[name] = v.total_bytes_allocated_per_bank * v.num_banks
        return view

    def close(self, keep=False):
        """Closes the device; its tensors are freed before, or (keep) with it."""
        if not keep:
            self.tensors.clear()
        (ttnn.close_mesh_device if self.is_mesh else ttnn.close_device)(self.device)
        self.tensors.clear()
        self.device = None

    def do(self, command):
        verb = command.pop("do")
        answer = {}
        if verb in ("add", "matmul"):
            self.run(getattr(ttnn, verb), **command)
        elif verb == "view":
            answer["view"] = self.view()
        elif verb in ("open", "alloc", "free", "close"):
            getattr(self, verb)(**command)
        elif verb != "ping":
            raise ValueError(f"no command {verb!r}")
        return answer


def main():
    job = Job()
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "exit":
            break
        try:
            answer = job.do(command)
        except Exception as e:  # the driver decides what is fatal
            answer = {"error": f"{type(e).__name__}: {e}"}
        answer.update(pid=os.getpid(), held=job.held(), chips=job.chips)
        print(json.dumps(answer), file=answers, flush=True)
    if job.device is not None:
        job.close()


main()
