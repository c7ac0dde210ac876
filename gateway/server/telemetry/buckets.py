"""The upper limits of the buckets of histograms, in seconds."""

HTTP = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
LAG = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
ATTEMPT = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30)
LATENCY = (0.05, 0.1, 0.5, 1, 5, 30, 60, 300, 600, 1800, 3600, 7200, 21600, 86400, 259200)
SHORT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
# With a limit at the threshold of the alert EventLoopLag, whose percentile is interpolated.
LOOP = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 5)
HASH = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
