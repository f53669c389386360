"""A small language model, as far as memory goes: weights layer by layer, a
prompt, then tokens, with activations in L1 and a KV cache that grows.

An ordinary ttnn program, on whatever board it finds. In a simulated host it is
tt-metal's own allocator that hands out the memory of boards that are not
there; ops take their buffers, and nothing is computed.

  model.py [--layers 16] [--hidden 4096] [--tokens 640] [--pace 0.5]
"""

import argparse
import time

import ttnn

TILE = 32


def arguments():
    p = argparse.ArgumentParser(description="a model-like program for ttmon's demo")
    p.add_argument("--layers", type=int, default=16)
    p.add_argument("--hidden", type=int, default=4096, help="width of the model, a multiple of 32")
    p.add_argument("--tokens", type=int, default=640, help="how many to generate")
    p.add_argument("--pace", type=float, default=0.5, help="seconds between two steps, to be watched")
    return p.parse_args()


def say(text):
    print(time.strftime("%H:%M:%S"), text, flush=True)


class Model:
    def __init__(self, device, layers, hidden, pace):
        self.device, self.hidden, self.pace = device, hidden, pace
        # One row less than there is: ttnn's own choice does not fit an n300 in mock mode.
        grid = device.compute_with_storage_grid_size()
        self.grid = ttnn.CoreGrid(x=grid.x, y=grid.y - 1)
        self.weights, self.cache, self.state = [], [], None
        for n in range(layers):
            self.weights.append((self.tensor(hidden, 3 * hidden), self.tensor(hidden, 4 * hidden), self.tensor(4 * hidden, hidden)))
            self.cache.append([])
            say(f"layer {n + 1} of {layers}: its weights are in DRAM")
            time.sleep(pace)

    def tensor(self, rows, columns, memory=ttnn.DRAM_MEMORY_CONFIG):
        return ttnn.empty([1, 1, rows, columns], ttnn.bfloat16, ttnn.TILE_LAYOUT, self.device, memory)

    def product(self, a, b):
        return ttnn.matmul(a, b, memory_config=ttnn.L1_MEMORY_CONFIG, core_grid=self.grid)

    def layer(self, x, up, down):
        """One layer on activations in L1: gives its result and frees the rest."""
        wide = self.product(x, up)
        time.sleep(self.pace / len(self.weights))
        back = self.product(wide, down)
        ttnn.deallocate(wide)
        result = ttnn.add(x, back, memory_config=ttnn.L1_MEMORY_CONFIG)
        ttnn.deallocate(back)
        ttnn.deallocate(x)
        return result

    def step(self, tokens):
        """Runs tokens, whole tiles of them, through all layers. The cache grows by a page a layer."""
        x = self.tensor(tokens, self.hidden, ttnn.L1_MEMORY_CONFIG)
        for (_, up, down), pages in zip(self.weights, self.cache):
            x = self.layer(x, up, down)
            pages.append((self.tensor(16 * tokens, self.hidden), self.tensor(16 * tokens, self.hidden)))
        if self.state is not None:
            ttnn.deallocate(self.state)
        self.state = x

    def forget(self):
        """Ends a conversation: the cache is freed, the weights stay."""
        for pages in self.cache:
            for keys, values in pages:
                ttnn.deallocate(keys)
                ttnn.deallocate(values)
            pages.clear()


def open_all():
    """All chips as one mesh; the first alone where they are not linked."""
    chips = ttnn.get_num_devices()
    say(f"opening {chips} chips")
    for shape in ((1, chips), (1, 1)):
        try:
            return ttnn.open_mesh_device(ttnn.MeshShape(*shape), l1_small_size=32768, trace_region_size=16 << 20)
        except RuntimeError:
            say("they are not linked: one will do")
    raise SystemExit("no chip could be opened")


def main():
    a = arguments()
    device = open_all()
    model = Model(device, a.layers, a.hidden, a.pace)
    for talk in (1, 2):
        say(f"conversation {talk}: a prompt of 256 tokens")
        model.step(256)
        for n in range(1, a.tokens // TILE + 1):
            model.step(TILE)
            say(f"conversation {talk}: {n * TILE} tokens said, {n + 1} pages of KV cache a layer")
        say(f"conversation {talk} is over: its cache is freed")
        model.forget()
        time.sleep(4 * a.pace)
    say("closing")
    ttnn.close_mesh_device(device)


main()
