"""Time and memory against size, in memory and in chunks; many small problems in one call.

    python benchmarks/bench_scale.py memory   # peak memory of denoise over the size of the data
    python benchmarks/bench_scale.py growth   # processor time per entry, in memory and by dask
    python benchmarks/bench_scale.py batch    # signals of 1024 samples, one by one and in one call

Every case runs in a process of its own. Memory is the peak resident size less the size after a small warm-up, data
included. "Arrays" is the peak of what NumPy has allocated, in a second run: the rest is what the C library keeps for
its threads. "One heap" is the peak with MALLOC_ARENA_MAX=1. Processor time counts all threads and worker processes; of
batches it is the least of three runs. Correctness is asserted, time is not.
"""

import json
import math
import os
import resource
import subprocess
import sys
import time
import tracemalloc

import numpy as np

import scorethresh as st


def scene(shape, dtype="float32"):
    """Waves and a step, with noise of level 5."""
    rng = np.random.default_rng(1)
    axes = np.meshgrid(*(np.arange(n, dtype=np.float32) for n in shape), indexing="ij", sparse=True)
    y = 40 * np.sin(sum(a / (9 + k) for k, a in enumerate(axes))) + 50 * (axes[0] > shape[0] // 3) + 100
    y = y + rng.normal(0.0, 5.0, shape).astype(np.float32)
    return y.astype(np.float32) if dtype == "float32" else np.clip(np.rint(y), 0, 255).astype(dtype)


def used():
    """Processor time so far, with that of worker processes that ended, and the peak of memory in MB."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, own.ru_maxrss / 1024


def reset_peak():
    """Let the peak of memory start from its present size, where the system can do that; return that size in MB."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass
    return used()[1]


def arrays(shape, dtype, choose):
    """Denoise once; return the peak of what NumPy has allocated, in MB."""
    y = scene(shape, dtype)
    st.denoise(scene((64,) * len(shape)), choose=choose)
    tracemalloc.start()
    st.Denoiser(choose=choose).run(y)
    return tracemalloc.get_traced_memory()[1] / 2**20


def case(shape, dtype, choose, workers):
    """Denoise once; return processor time and memory."""
    y = scene(shape, dtype)
    st.denoise(scene((64,) * len(shape)), choose=choose)
    start = reset_peak()
    before = used()
    if not workers:
        found = st.Denoiser(choose=choose, sigma=None).run(y)
        mse = found.predicted_mse
    else:
        import dask.array as da
        from distributed import Client, LocalCluster

        from scorethresh.scale.cluster import NO_DASHBOARD

        side = max(64, round((1 << 20) ** (1 / len(shape))))
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, **NO_DASHBOARD) as cluster,
            Client(cluster) as client,
        ):
            lazy = st.Denoiser(choose=choose).run(da.from_array(y, chunks=side))
            mse = float(lazy.predicted_mse.compute())
            peaks = client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    after = used()
    memory = after[1] - start if not workers else max(peaks.values())
    return {"cpu": after[0] - before[0], "memory": memory, "size": y.size, "megabytes": y.nbytes / 2**20, "mse": mse}


def in_process(*arguments, name="case", **settings):
    command = [sys.executable, __file__, name, json.dumps(arguments)]
    text = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | settings).stdout
    return json.loads(text.splitlines()[-1])


def memory():
    columns = f"{'input MB':>10}{'arrays MB':>11}{'peak MB':>10}{'one heap':>10}{'8 x + 100':>11}{'CPU s':>8}"
    print(f"{'data':<24}{'choose':<8}{columns}")
    cases = [((512, 512), "float32"), ((1024, 1024), "uint8"), ((2048, 2048), "float32"), ((2048, 2048), "uint8")]
    cases += [((1_000_000,), "float32"), ((128, 128, 128), "float32"), ((4096, 4096), "float32")]
    for shape, dtype in [*cases, ((4096, 4096), "uint8")]:
        for choose in ("bands", "fast", "blend"):
            found = in_process(shape, dtype, choose, 0)
            shared = in_process(shape, dtype, choose, 0, MALLOC_ARENA_MAX="1")
            held = in_process(shape, dtype, choose, name="arrays")
            name, size = f"{' x '.join(map(str, shape))} {dtype}", found["megabytes"]
            row = f"{name:<24}{choose:<8}{size:10.1f}{held:11.0f}{found['memory']:10.0f}{shared['memory']:10.0f}"
            print(f"{row}{8 * size + 100:11.0f}{found['cpu']:8.1f}", flush=True)


def growth():
    print(f"{'data':<16}{'where':<12}{'CPU s':>8}{'us / entry':>12}{'memory MB':>11}{'exponent':>10}")
    for shapes in ([(n, n) for n in (1024, 2048, 4096)], [(n, n, n) for n in (96, 192)]):
        for where, workers in (("memory", 0), ("1 worker", 1), ("2 workers", 2)):
            last = None
            for shape in shapes:
                if workers and math.prod(shape) <= 1 << 22:
                    continue
                found = in_process(shape, "float32", "fast", workers)
                exponent = ""
                if last is not None:
                    ratio = math.log(found["cpu"] / last["cpu"]) / math.log(found["size"] / last["size"])
                    exponent = f"{ratio:.2f}"
                last = found
                each = 1e6 * found["cpu"] / found["size"]
                name = " x ".join(map(str, shape))
                row = f"{name:<16}{where:<12}{found['cpu']:8.1f}{each:12.2f}{found['memory']:11.0f}{exponent:>10}"
                print(row, flush=True)


def batch():
    rng, t = np.random.default_rng(0), np.arange(1024)
    y = 5 * np.sin(t / 20 + rng.uniform(0, 6, (240, 1))) + 3 * (t > 500) + rng.normal(size=(240, 1024))
    print(f"{'options':<36}{'one by one':>12}{'batch':>8}{'pooled':>8}  ms per signal, processor time")

    def cost(run, count):
        times = []
        for _ in range(3):
            start = time.process_time()
            out = run()
            times.append(time.process_time() - start)
        return 1e3 * min(times) / count, out

    names = ("bands", "fast", "blend")
    for options in [{"choose": name} | level for level in ({"sigma": 1.0}, {}) for name in names]:
        # Rounding may choose another patch where two are as near: then some entries differ by a hundredth of the noise.
        some, atol = (y, 2e-2 if options["choose"] == "blend" else 1e-5)
        one = st.Denoiser(**options)
        one.run(y[0])
        first = some[:12]
        alone, each = cost(lambda one=one, first=first: [one.run(row).estimate for row in first], len(first))
        many = st.Denoiser(batch_axis=0, **options)
        together, found = cost(lambda many=many, some=some: many.run(some), len(some))
        np.testing.assert_allclose(found.estimate[:12], each, atol=atol)
        pooled, _ = cost(lambda: st.Denoiser(batch_axis=0, pooled=True, **options).run(some), len(some))  # noqa: B023
        print(f"{options!s:<36}{alone:12.2f}{together:8.2f}{pooled:8.2f}", flush=True)
    for function, name in ((st.select_threshold, "threshold"), (st.shrink, "risk")):
        alone, each = cost(lambda: [getattr(function(row, sigma=1.0), name) for row in y], len(y))  # noqa: B023
        together, found = cost(lambda: function(y, sigma=1.0, batch_axis=0), len(y))  # noqa: B023
        pooled, _ = cost(lambda: function(y, sigma=1.0, batch_axis=0, pooled=True), len(y))  # noqa: B023
        np.testing.assert_allclose(getattr(found, name), each, rtol=1e-6)
        print(f"{function.__name__:<36}{alone:12.2f}{together:8.2f}{pooled:8.2f}")


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore", st.AssumptionWarning)
    if sys.argv[1] == "arrays":
        shape, dtype, choose = json.loads(sys.argv[2])
        print(json.dumps(arrays(tuple(shape), dtype, choose)))
    elif sys.argv[1] == "case":
        shape, dtype, choose, workers = json.loads(sys.argv[2])
        print(json.dumps(case(tuple(shape), dtype, choose, workers)))
    else:
        {"memory": memory, "growth": growth, "batch": batch}[sys.argv[1]]()
