"""The kinds of charts, as Vega-Lite specifications without data. A page holds its data as rows and
names the kind; the same specification with the rows in it gives the picture as SVG."""

from .specification import KINDS, legend, told, vega_specification
