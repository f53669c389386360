"""A ttnn program that does what it is told, one step at a time.

Reads commands as lines of JSON from standard input and answers each with one
line of JSON on standard output: what it holds, by its own account.

  {"do": "open", "device": 0, "l1_small": 32768, "trace": 1048576}
  {"do": "open", "mesh": [8, 4]}
  {"do": "alloc", "name": "a", "pool": "dram", "bytes": 2097152}
  {"do": "alloc", "name": "b", "pool": "dram", "bytes": 2097152, "thread": true}
  {"do": "add", "name": "c", "of": ["a", "a"]}
  {"do": "add", "name": "c", "of": ["a", "a"], "queue": 1}
                          on the second command queue of a device that was opened with "queues": 2
  {"do": "matmul", "name": "d", "of": ["x", "y"]}
  {"do": "softmax", "name": "e", "of": ["x"]}
  {"do": "forget"}        drops all cached programs, and keeps none from now on
  {"do": "free", "name": "a"}         {"do": "free", "name": "a", "thread": true}
  {"do": "view"}          the allocator's own view, where the release offers it
  {"do": "table"}         all it knows of its pools: capacity, holes, every block
  {"do": "churn", "seed": 1, "steps": 500, "threads": 3}
                          random allocations and frees in all pools, and some ops;
                          what is left stays allocated until "drop"
  {"do": "clash", "of": "a"}          adds a tensor to itself, and says what tt-metal says if that does not fit beside what L1 holds;
                          "bytes": 2097152 runs a program with a circular buffer of so many instead
  {"do": "storm", "rounds": 1000}     asks for what does not fit again and again; ns a time
  {"do": "tensors"}       each tensor on the device, as ttnn describes it
  {"do": "drop"}
  {"do": "spin", "rounds": 5000}
                          allocates and frees a tensor so often, and tells the time of a round
  {"do": "try", "pool": "dram", "pages": 8, "page": 2048}
                          whether a buffer of so many pages can be allocated now
  {"do": "ask", "pool": "l1", "rows": 64, "columns": 1024, "cores": 2, "name": "a"}
                          a tensor of tiles, sharded by height if cores are given, and what tt-metal
                          says if there is no room; without a name it is freed again. "sub_device": 0
                          has a sub-device's own allocator asked (with the preload subdevice.c)
  {"do": "shard", "name": "a", "cores": [[0, 0], [1, 0]], "bytes": 4096, "how": "per_core"}
                          a tensor of so many bytes of L1 on each of these cores, each wherever its core has
                          room ("per_core"; with TT_METAL_ALLOCATOR_MODE_HYBRID=1), at one address of all cores
                          ("lockstep") or of these ("range"); and what tt-metal says if there is no room
  {"do": "die", "pool": "l1", "rows": 64, "columns": 1024}     the same, and dies of the exception
  {"do": "fix", "free": [4096], "again": true, "ask": {…}}
                          whether it would fit with the tensors at these addresses freed (and the
                          first of them copied before): tried in a child
  {"do": "env", "name": "TT_METAL_SHM_TRACKING_DISABLED", "value": "1"}
                          sets a variable of its own environment
  {"do": "fork", "bytes": 2097152}
                          a child that allocates so much of DRAM and stays as long as its parent
  {"do": "rename", "name": "trainer"}
                          gives the process another name
  {"do": "capture", "mode": "NO_DISPATCH"}         {"do": "end_capture"}
                          a graph capture; what is allocated during one of that
                          mode does not exist, and is not held; the answer has
                          what the operations in it took for circular buffers
  {"do": "trace"}         captures a trace of nothing, keeps it, and says what tt-metal says if it does
                          not fit (with the preload subdevice.c: operations in a trace crash in mock mode);
                          "bytes": 100000 has tt-metal take it for one of that size
  {"do": "untrace", "nth": 0}                      releases a trace that is kept
  {"do": "divide", "parts": 2, "l1": 262144}       {"do": "unite"}
                          divides the device into so many sub-devices of four cores each, and sets
                          so much L1 of each core aside for their own allocators; undoes that
  {"do": "feed"}          lets a thread of the preload feed.c report programs (0.71 to 0.75)
  {"do": "finish"}        waits for all that was enqueued, or ("queue": 1) for that on one command queue
  {"do": "finish", "later": true}                  the same on another thread, and does not wait for that
  {"do": "close"}         {"do": "close", "keep": true}         {"do": "exit"}

Sizes are in bytes on one chip, in whole tiles (2048 bytes); l1_small goes one
tile to a core. A mesh holds the same on each of its chips.
"""

import ctypes
import json
import os
import random
import re
import signal
import sys
import threading
import time

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
        self.churned = []  # tensors that churn has left
        self.asked = {}  # name -> how "ask" made the tensor
        self.pretends = False  # in a capture that allocates nothing
        self.traces = []

    def held(self):
        sums = dict.fromkeys(POOLS, 0)
        for _, pool, size in self.tensors.values():
            sums[pool] += size
        return sums

    def open(self, device=0, mesh=None, l1_small=0, trace=0, queues=1):
        self.is_mesh = mesh is not None
        sizes = {"l1_small_size": l1_small, "trace_region_size": trace, "num_command_queues": queues}
        if self.is_mesh:
            self.device = ttnn.open_mesh_device(ttnn.MeshShape(*mesh), **sizes)
            self.chips = self.device.get_num_devices()
        else:
            self.device = ttnn.open_device(device_id=device, **sizes)
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
        self.tensors[name] = (tensor, pool, 0 if self.pretends else size)

    def rows(self, name, pool, rows, page):
        """A row-major tensor of uint32: each row is a page, which the allocator pads."""
        memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.INTERLEAVED, POOLS[pool])
        tensor = ttnn.empty([1, 1, rows, page // 4], ttnn.uint32, ttnn.ROW_MAJOR_LAYOUT, self.device, memory)
        self.tensors[name] = (tensor, pool, 0 if self.pretends else rows * page)

    def run(self, op, name, of, queue=None):
        pool = self.tensors[of[0]][1]
        where = {} if queue is None else {"queue_id": queue}
        result = op(*(self.tensors[name][0] for name in of), **where)
        rows, columns = result.shape[-2], result.shape[-1]
        self.tensors[name] = (result, pool, rows * columns * 2)

    def free(self, name, thread=False):
        tensor, _, _ = self.tensors.pop(name)
        if not thread:
            ttnn.deallocate(tensor)
            return
        worker = threading.Thread(target=ttnn.deallocate, args=(tensor,))
        worker.start()
        worker.join()

    def fork(self, bytes):
        done, ready = os.pipe()
        if os.fork() == 0:
            try:
                ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
                self.make("child", "dram", bytes, 0)
                os.write(ready, b"1")
                while True:
                    signal.pause()
            finally:
                os._exit(1)
        os.close(ready)
        made = os.read(done, 1)
        os.close(done)
        if not made:
            raise RuntimeError("the child could not allocate: see standard error")

    def capture(self, mode):
        ttnn._ttnn.graph.begin_graph_capture(getattr(ttnn._ttnn.graph.RunMode, mode))  # without the Python layer, which needs torch
        self.pretends = mode == "NO_DISPATCH"

    def end_capture(self):
        self.pretends = False
        nodes = ttnn._ttnn.graph.end_graph_capture() or []
        sizes = [int(node["params"]["size"]) for node in nodes if node["node_type"] == "circular_buffer_allocate"]
        return {"cb": sum(circular_buffer(node) for node in nodes), "cb_core": sum(sizes)}

    def view(self):
        """Bytes the allocator has given out, over all banks, per pool."""
        view = {}
        for name, pool in POOLS.items():
            v = ttnn.get_memory_view(self.device, pool)
            view[name] = v.total_bytes_allocated_per_bank * v.num_banks
        return view

    def table(self):
        """The allocator's own table of each pool that it reports; addresses count from the pool's base."""
        try:
            return {name: table_of(ttnn.get_memory_view(self.device, pool)) for name, pool in POOLS.items()}
        except TypeError:  # before 0.72 the view does not convert to Python
            ttnn.device.dump_device_memory_state(self.device, "table_")
            return read_report(os.path.join(os.environ["TT_METAL_LOGS_PATH"], "generated/reports"), "table_")

    def churn(self, seed, steps, threads=1, ops=True):
        def work(number):
            rng, mine = random.Random(seed * 100 + number), []
            for _ in range(steps):
                if mine and rng.random() < 0.45:
                    ttnn.deallocate(mine.pop(rng.randrange(len(mine))))
                    continue
                try:
                    # Only the main thread runs ops: two at once are not for every release.
                    if ops and number == 0 and len(mine) > 1 and rng.random() < 0.05:
                        mine.append(ttnn.add(mine[-1], mine[-1]))
                    else:
                        mine.append(self.random_tensor(rng))
                except RuntimeError:
                    pass  # out of memory, or an op that does not like its arguments
            self.churned.extend(mine)

        workers = [threading.Thread(target=work, args=(n,)) for n in range(1, threads)]
        for w in workers:
            w.start()
        work(0)
        for w in workers:
            w.join()

    def random_tensor(self, rng):
        pool = rng.choice(["dram", "dram", "dram", "l1", "l1", "sharded", "l1_small", "trace"])
        dtype = rng.choice([ttnn.bfloat16, ttnn.bfloat16, ttnn.float32, ttnn.uint32, ttnn.bfloat8_b])
        layout = ttnn.TILE_LAYOUT
        if dtype != ttnn.bfloat8_b and rng.random() < 0.3:
            layout = ttnn.ROW_MAJOR_LAYOUT
        if pool in ("sharded", "l1_small"):
            grid = self.device.compute_with_storage_grid_size()
            cores = rng.randint(1, grid.x * grid.y if pool == "sharded" else 4)
            shape = (32 * rng.randint(1, 2), 32 * rng.randint(1, 2 if pool == "sharded" else 1))
            spec = ttnn.ShardSpec(ttnn.num_cores_to_corerangeset(cores, grid, True), shape, ttnn.ShardOrientation.ROW_MAJOR)
            kind = ttnn.BufferType.L1 if pool == "sharded" else ttnn.BufferType.L1_SMALL
            memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, kind, spec)
            return ttnn.empty([1, 1, shape[0] * cores, shape[1]], ttnn.bfloat16, ttnn.TILE_LAYOUT, self.device, memory)
        largest = {"dram": 64, "l1": 8, "trace": 2}[pool]
        shape = [1, 1, 32 * rng.randint(1, largest), 32 * rng.randint(1, largest)]
        if layout == ttnn.ROW_MAJOR_LAYOUT:
            shape[2:] = [rng.randint(1, 32 * largest), 2 * rng.randint(1, 16 * largest)]
        memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.INTERLEAVED, POOLS[pool])
        return ttnn.empty(shape, dtype, layout, self.device, memory)

    def spin(self, rounds):
        begin = time.thread_time_ns()  # the machine may be busy
        for _ in range(rounds):
            ttnn.deallocate(ttnn.empty([1, 1, 32, 32], ttnn.bfloat16, ttnn.TILE_LAYOUT, self.device, ttnn.DRAM_MEMORY_CONFIG))
        return (time.thread_time_ns() - begin) / rounds

    def storm(self, rounds):
        """Asks for what does not fit, as fast as it can; what it takes a time, in ns."""
        said = 0
        begin = time.thread_time_ns()
        for _ in range(rounds):
            try:
                ttnn.empty([1, 1, 1 << 20, 1 << 15], ttnn.bfloat16, ttnn.TILE_LAYOUT, self.device, ttnn.DRAM_MEMORY_CONFIG)
            except RuntimeError:
                said += 1
        if said != rounds:
            raise RuntimeError("64 GiB fit")
        return (time.thread_time_ns() - begin) / rounds

    def try_pages(self, pool, pages, page):
        """Row-major rows of uint8-like pages: each row of a row-major tensor is a page."""
        memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.INTERLEAVED, POOLS[pool])
        try:
            tensor = ttnn.empty([1, 1, pages, page // 4], ttnn.uint32, ttnn.ROW_MAJOR_LAYOUT, self.device, memory)
        except RuntimeError:
            return False
        ttnn.deallocate(tensor)
        return True

    def try_sharded(self, pool, cores, rows, page):
        """A row-major tensor of uint32, so many rows of a page on each of so many cores."""
        spec = ttnn.ShardSpec(
            ttnn.num_cores_to_corerangeset(cores, self.device.compute_with_storage_grid_size(), True),
            (rows, page // 4), ttnn.ShardOrientation.ROW_MAJOR)
        memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, POOLS[pool], spec)
        try:
            tensor = ttnn.empty([1, 1, cores * rows, page // 4], ttnn.uint32, ttnn.ROW_MAJOR_LAYOUT, self.device, memory)
        except RuntimeError:
            return False
        ttnn.deallocate(tensor)
        return True

    def shard(self, name, cores, bytes, how):
        """A tensor of uint32, so many bytes on each core: one page, if they are not more than 64 KiB."""
        rows = -(-bytes // (64 << 10))
        grid = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(x, y), ttnn.CoreCoord(x, y)) for x, y in cores])
        spec = ttnn.ShardSpec(grid, (rows, bytes // rows // 4), ttnn.ShardOrientation.ROW_MAJOR)
        memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, POOLS["l1"], spec)
        if how == "per_core":
            memory.experimental_set_per_core_allocation(True)
        elif how == "range":
            memory.experimental_set_range_lockstep_allocation(True)
        try:
            tensor = ttnn.empty([1, 1, rows * len(cores), bytes // rows // 4], ttnn.uint32, ttnn.ROW_MAJOR_LAYOUT, self.device, memory)
        except RuntimeError as e:
            return {"fits": False, "message": str(e)}
        self.tensors[name] = (tensor, "l1", len(cores) * bytes)
        return {"fits": True, "at": 0 if how == "per_core" else tensor.buffer_address()}

    def finish(self, later=False, queue=None):
        args = (self.device,) if queue is None else (self.device, queue)
        if later:
            threading.Thread(target=ttnn.synchronize_device, args=args, daemon=True).start()
        else:
            ttnn.synchronize_device(*args)

    def trace(self, bytes=0):
        ctypes.CDLL(None).ttmon_trace_bytes(bytes)
        try:
            trace = ttnn.begin_trace_capture(self.device, cq_id=0)
            ttnn.end_trace_capture(self.device, trace, cq_id=0)
        except RuntimeError as e:
            return {"fits": False, "message": str(e)}
        self.traces.append(trace)
        return {"fits": True}

    def untrace(self, nth):
        ttnn.release_trace(self.device, self.traces.pop(nth))

    def divide(self, parts, l1=0):
        """Divides the device into so many sub-devices, of the first four cores of a row each."""
        manager = self.device.create_sub_device_manager([ttnn.SubDevice([row_of(part, 4)]) for part in range(parts)], l1)
        self.device.load_sub_device_manager(manager)

    def unite(self):
        self.device.clear_loaded_sub_device_manager()

    def build(self, pool, rows, columns, cores=0, sub_device=None):
        memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.INTERLEAVED, POOLS[pool])
        if cores:
            grid = self.device.compute_with_storage_grid_size()
            where = ttnn.num_cores_to_corerangeset(cores, grid, True) if sub_device is None else row_of(sub_device, cores)
            spec = ttnn.ShardSpec(where, (rows // cores, columns), ttnn.ShardOrientation.ROW_MAJOR)
            memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, POOLS[pool], spec)
        if sub_device is not None:
            ctypes.CDLL(None).ttmon_sub_device(sub_device)
        try:
            return ttnn.empty([1, 1, rows, columns], ttnn.bfloat16, ttnn.TILE_LAYOUT, self.device, memory)
        finally:
            if sub_device is not None:
                ctypes.CDLL(None).ttmon_sub_device(-1)

    def ask(self, name="", thread=False, **how):
        said = []

        def work():
            try:
                tensor = self.build(**how)
            except RuntimeError as e:
                said.append(str(e))
                return
            if name:
                self.tensors[name] = (tensor, how["pool"], how["rows"] * how["columns"] * 2)
                self.asked[name] = how
            else:
                ttnn.deallocate(tensor)

        if thread:
            worker = threading.Thread(target=work)
            worker.start()
            worker.join()
        else:
            work()
        return {"fits": not said, "message": said[0] if said else ""}

    def fix(self, ask, free=(), again=False):
        done, ready = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                names = {
                    tensor.buffer_address(): name
                    for name, (tensor, pool, _) in self.tensors.items()
                    if pool == ask.get("held", ask["pool"]) and self.asked.get(name, {}).get("sub_device") == ask.get("sub_device")
                }
                copy = self.build(**self.asked[names[free[0]]]) if again else None
                for address in free:
                    ttnn.deallocate(self.tensors[names[address]][0])
                ask.pop("held", None)
                wanted = self.build(**ask)
                assert wanted is not copy
                os.write(ready, b"1")
            finally:
                os._exit(0)
        os.close(ready)
        fits = os.read(done, 1) == b"1"
        os.close(done)
        os.waitpid(child, 0)
        return {"fits": fits}

    def clash(self, of, bytes=0):
        """Runs an operation on a tensor, whose circular buffers may reach into a buffer of L1, or end behind it."""
        tensor = self.tensors[of][0]
        try:
            if bytes:
                cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 1))])
                page = ttnn.CBFormatDescriptor(buffer_index=0, data_format=ttnn.bfloat16, page_size=2048)
                buffer = ttnn.CBDescriptor(total_size=bytes, core_ranges=cores, format_descriptors=[page])
                ttnn.generic_op([tensor, tensor], ttnn.ProgramDescriptor(kernels=[], semaphores=[], cbs=[buffer]))
            else:
                ttnn.deallocate(ttnn.add(tensor, tensor))
        except RuntimeError as e:
            return {"fits": False, "message": str(e)}
        return {"fits": True}

    def describe(self):
        """Each tensor on the device, by its address, as ttnn describes it."""
        held = list(self.churned) + [tensor for tensor, _, _ in self.tensors.values()]
        return [describe(tensor) for tensor in held if tensor.is_allocated()]

    def close(self, keep=False):
        """Closes the device; its tensors are freed before, or (keep) with it."""
        if not keep:
            self.churned.clear()
            self.tensors.clear()
        (ttnn.close_mesh_device if self.is_mesh else ttnn.close_device)(self.device)
        self.traces.clear()
        self.tensors.clear()
        self.churned.clear()
        self.device = None

    def do(self, command):
        verb = command.pop("do")
        answer = {}
        if verb in ("add", "matmul", "relu", "softmax"):
            self.run(getattr(ttnn, verb), **command)
        elif verb == "view":
            answer["view"] = self.view()
        elif verb == "table":
            answer["table"] = self.table()
        elif verb == "try":
            answer["fits"] = self.try_pages(**command)
        elif verb == "try_sharded":
            answer["fits"] = self.try_sharded(**command)
        elif verb == "tensors":
            answer["tensors"] = self.describe()
        elif verb in ("ask", "fix", "clash", "shard", "trace"):
            answer.update(getattr(self, verb)(**command))
        elif verb == "spin":
            answer["round"] = self.spin(**command)
        elif verb == "storm":
            answer["round"] = self.storm(**command)
        elif verb == "forget":
            self.device.disable_and_clear_program_cache()
        elif verb == "drop":
            self.churned.clear()
        elif verb == "env":
            os.environ[command["name"]] = command["value"]
        elif verb == "rename":
            with open("/proc/self/comm", "w") as f:
                f.write(command["name"])
        elif verb == "feed":
            ctypes.CDLL(None).ttmon_feed_start()
        elif verb == "end_capture":
            answer.update(self.end_capture())
        elif verb in ("open", "alloc", "free", "close", "churn", "capture", "fork", "rows", "finish", "divide", "unite", "untrace"):
            getattr(self, verb)(**command)
        elif verb != "ping":
            raise ValueError(f"no command {verb!r}")
        return answer


def describe(tensor):
    memory = tensor.memory_config()
    words = [
        "[" + ",".join(str(n) for n in tensor.shape) + "]",
        str(tensor.dtype).split(".")[-1].lower(),
        str(tensor.layout).split(".")[-1].lower(),
        str(memory.memory_layout).split(".")[-1].lower(),
    ]
    pool = next(name for name, kind in POOLS.items() if kind == memory.buffer_type)
    return {"pool": pool, "address": tensor.buffer_address(), "tensor": " ".join(words)}


def row_of(part, cores):
    """So many cores of a sub-device."""
    return ttnn.CoreRangeSet({ttnn.CoreRange(ttnn.CoreCoord(0, part), ttnn.CoreCoord(cores - 1, part))})


def circular_buffer(node):
    """The bytes that a node of a captured graph takes for circular buffers, over its cores."""
    if node["node_type"] != "circular_buffer_allocate":
        return 0
    cores = 0
    for x0, y0, x1, y1 in re.findall(r"(\d+)\D+(\d+)\D+(\d+)\D+(\d+)", node["params"]["core_range_set"]):
        cores += (int(x1) - int(x0) + 1) * (int(y1) - int(y0) + 1)
    return int(node["params"]["size"]) * cores


def table_of(view):
    return {
        "banks": view.num_banks,
        "capacity": view.total_bytes_per_bank,
        "allocated": view.total_bytes_allocated_per_bank,
        "free": view.total_bytes_free_per_bank,
        "largest": view.largest_contiguous_bytes_free_per_bank,
        "blocks": sorted([int(b["address"]), int(b["size"])] for b in view.block_table if b["allocated"] == "yes"),
    }


def read_report(directory, prefix):
    """The same out of the files of a memory report, which leave out TRACE and the number of banks."""
    with open(os.path.join(directory, prefix + "memory_usage_summary.csv")) as f:
        rows = [[int(n) for n in line.strip().split(",")[1:]] for line in f.readlines()[1:4]]
    tables = {
        name: dict(zip(("capacity", "allocated", "free", "largest"), row), banks=0, blocks=[])
        for name, row in zip(("dram", "l1", "l1_small"), rows)
    }
    pool = None
    with open(os.path.join(directory, prefix + "detailed_memory_usage.csv")) as f:
        for line in f:
            words = line.split()
            if line.startswith(",") and line.strip(",\n").lower() in tables:
                pool = line.strip(",\n").lower()
            elif len(words) == 6 and words[5] == "yes":
                tables[pool]["blocks"].append([int(words[1]), int(words[2])])
    for table in tables.values():
        table["blocks"].sort()
    return tables


def die(job, how):
    """Asks for what does not fit, and catches nothing: the program ends."""
    del how["do"]
    job.build(**how)
    raise ValueError("it fits")


def main():
    job = Job()
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "exit":
            break
        if command["do"] == "die":
            die(job, command)
        try:
            answer = job.do(command)
        except Exception as e:  # the driver decides what is fatal
            answer = {"error": f"{type(e).__name__}: {e}"}
        answer.update(pid=os.getpid(), held=job.held(), chips=job.chips)
        print(json.dumps(answer), file=answers, flush=True)
    if job.device is not None:
        job.close()


main()
