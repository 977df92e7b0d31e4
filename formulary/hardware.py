"""Cards, links and number formats as their makers describe them: data only.

Memory is the datasheet's figure in decimal GB; drivers report about as many GiB. Bandwidths are per direction: half of
what datasheets print for NVLink, Infinity Fabric and PCIe. Peaks are dense; the sparse figure is kept apart.
"""

from . import glossary  # noqa: F401  (the bundles name its quantities)
from .facts import Bundle

SEEN = "2026-11-29"

_CARD = ("memory_capacity", "memory_bandwidth", "peak_flop_per_s", "link_bandwidth", "gpu_power")

# title: (source, (memory, its bandwidth, dense 16-bit peak, link per direction, power), other peaks)
_CARDS = {
    "V100 32GB": (
        "NVIDIA V100 datasheet",
        ("32GB", "900 GB/s", "125 TFLOP/s", "150 GB/s", "300 W"),
        {"fp32_flop_per_s": "15.7 TFLOP/s"},
    ),
    "T4": (
        "NVIDIA T4 datasheet; linked by PCIe 3.0 x16",
        ("16GB", "320 GB/s", "65 TFLOP/s", "15.75 GB/s", "70 W"),
        {"fp32_flop_per_s": "8.1 TFLOP/s"},
    ),
    "A100 40GB": (
        "NVIDIA A100 datasheet, SXM4",
        ("40GB", "1555 GB/s", "312 TFLOP/s", "300 GB/s", "400 W"),
        {"sparse_flop_per_s": "624 TFLOP/s", "tf32_flop_per_s": "156 TFLOP/s", "fp32_flop_per_s": "19.5 TFLOP/s"},
    ),
    "A100 80GB": (
        "NVIDIA A100 datasheet, SXM4",
        ("80GB", "2039 GB/s", "312 TFLOP/s", "300 GB/s", "400 W"),
        {
            "sparse_flop_per_s": "624 TFLOP/s",
            "tf32_flop_per_s": "156 TFLOP/s",
            "fp32_flop_per_s": "19.5 TFLOP/s",
            "num_multiprocessors": 108,
            "multiprocessor_memory": "192KiB",
        },
    ),
    "H100 SXM": (
        "NVIDIA H100 datasheet",
        ("80GB", "3350 GB/s", "989.5 TFLOP/s", "450 GB/s", "700 W"),
        {
            "sparse_flop_per_s": "1979 TFLOP/s",
            "fp8_flop_per_s": "1979 TFLOP/s",
            "tf32_flop_per_s": "494.5 TFLOP/s",
            "fp32_flop_per_s": "67 TFLOP/s",
        },
    ),
    "H100 PCIe": (
        "NVIDIA H100 datasheet; NVLink bridge between two cards",
        ("80GB", "2000 GB/s", "756.5 TFLOP/s", "300 GB/s", "350 W"),
        {
            "sparse_flop_per_s": "1513 TFLOP/s",
            "fp8_flop_per_s": "1513 TFLOP/s",
            "tf32_flop_per_s": "378 TFLOP/s",
            "fp32_flop_per_s": "51 TFLOP/s",
        },
    ),
    "H200": (
        "NVIDIA H200 datasheet, SXM",
        ("141GB", "4800 GB/s", "989.5 TFLOP/s", "450 GB/s", "700 W"),
        {
            "sparse_flop_per_s": "1979 TFLOP/s",
            "fp8_flop_per_s": "1979 TFLOP/s",
            "tf32_flop_per_s": "494.5 TFLOP/s",
            "fp32_flop_per_s": "67 TFLOP/s",
        },
    ),
    "B200": (
        "NVIDIA DGX B200 datasheet, one of eight cards",
        ("180GB", "8000 GB/s", "2250 TFLOP/s", "900 GB/s", "1000 W"),
        {
            "sparse_flop_per_s": "4500 TFLOP/s",
            "fp8_flop_per_s": "4500 TFLOP/s",
            "tf32_flop_per_s": "1125 TFLOP/s",
            "fp32_flop_per_s": "75 TFLOP/s",
        },
    ),
    "MI300X": (
        "AMD Instinct MI300X datasheet; seven Infinity Fabric links",
        ("192GB", "5300 GB/s", "1307.4 TFLOP/s", "448 GB/s", "750 W"),
        {
            "sparse_flop_per_s": "2614.9 TFLOP/s",
            "fp8_flop_per_s": "2614.9 TFLOP/s",
            "tf32_flop_per_s": "653.7 TFLOP/s",
            "fp32_flop_per_s": "163.4 TFLOP/s",
        },
    ),
    "RTX 4090": (
        "NVIDIA Ada GPU architecture whitepaper, fp32 accumulation; linked by PCIe 4.0 x16",
        ("24GB", "1008 GB/s", "165.2 TFLOP/s", "31.5 GB/s", "450 W"),
        {
            "sparse_flop_per_s": "330.3 TFLOP/s",
            "fp8_flop_per_s": "330.3 TFLOP/s",
            "tf32_flop_per_s": "82.6 TFLOP/s",
            "fp32_flop_per_s": "82.6 TFLOP/s",
        },
    ),
}

GPUS = {
    title: Bundle(title, source, SEEN, **dict(zip(_CARD, figures, strict=True)), **peaks)
    for title, (source, figures, peaks) in _CARDS.items()
}

_PCIE = "PCI Express Base Specification, generations 3 to 5"
_INFINIBAND = "InfiniBand Trade Association roadmap, four lanes"

# title: (source, bandwidth per direction)
_NETWORKS = {
    "InfiniBand EDR": (_INFINIBAND, "100 Gb/s"),
    "InfiniBand HDR": (_INFINIBAND, "200 Gb/s"),
    "InfiniBand NDR": (_INFINIBAND, "400 Gb/s"),
    "InfiniBand XDR": (_INFINIBAND, "800 Gb/s"),
    "Ethernet 10G": ("IEEE 802.3ae", "10 Gb/s"),
    "Ethernet 25G": ("IEEE 802.3by", "25 Gb/s"),
    "Ethernet 100G": ("IEEE 802.3bj", "100 Gb/s"),
    "Ethernet 400G": ("IEEE 802.3bs", "400 Gb/s"),
}
NETWORKS = {title: Bundle(title, source, SEEN, bandwidth=rate) for title, (source, rate) in _NETWORKS.items()}

PCIE = {
    "PCIe 3.0 x16": Bundle("PCIe 3.0 x16", _PCIE, SEEN, num_lanes=16, transfers_per_s=8e9),
    "PCIe 4.0 x16": Bundle("PCIe 4.0 x16", _PCIE, SEEN, num_lanes=16, transfers_per_s=16e9),
    "PCIe 5.0 x16": Bundle("PCIe 5.0 x16", _PCIE, SEEN, num_lanes=16, transfers_per_s=32e9),
}

IEEE = "IEEE 754-2019, section 3"
OCP = "OCP 8-bit Floating Point Specification (OFP8), revision 1.0, 2023"
_BITS = ("mantissa_bits", "exponent_bits", "max_exponent", "reserved_codes")
_FORMATS = {
    "fp64": (IEEE, (52, 11, 1023, 0)),
    "fp32": (IEEE, (23, 8, 127, 0)),
    "fp16": (IEEE, (10, 5, 15, 0)),
    "bf16": ("Kalamkar et al., A Study of BFLOAT16 for Deep Learning Training, 2019", (7, 8, 127, 0)),
    "E4M3": (OCP, (3, 4, 8, 1)),
    "E5M2": (OCP, (2, 5, 15, 0)),
}
FORMATS = {title: Bundle(title, source, SEEN, **dict(zip(_BITS, bits, strict=True))) for title, (source, bits) in _FORMATS.items()}
