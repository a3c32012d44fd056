// Package pipeline is the map of its folders; it holds no code.
//
// The way of a granule, from file to analysis:
//
//	ingest     NetCDF file to fields, in a child process with limits
//	field      one map of the ocean: grid, values, mask, transform
//	swath      pixels without a grid to the cells of one
//	merge      the fields that several sources have of a day to one
//	quality    tests of observations, and sea under ice
//	seamask    which cells of a grid are sea, anywhere on Earth
//	classical  optimal interpolation, DINEOF and others that need no training
//	covariate  other variables on the grid and the days of a dataset, as far as they pay
//	engine     ONNX Runtime and XLA, and the programs that run on them
//	trusted    which libraries and programs nobody else may change
//	nn         the networks as graphs, their weights and files
//	impute     predictions of trained networks for a window: mean, sigma, members
//	infer      a scene to an analysis: windows, members, tiers, flags
//	parts      calibration and scaling of a version, as files hold them
//
// The way of a model, from days to a version:
//
//	samples    days to patches, split by time, with the days around them
//	partition  observed cells cut in two: context, which is seen, and query
//	prior      the network of gaps: its masks, their likelihood, its partitions
//	masks      measures of masks, and how strongly guidance must pull them
//	train      the loop, the loader and the checkpoint of every training
//	learn      examples and losses of prior, imputer, members and reliability
//	skill      scores of a filled map
//	matchup    products held against measurements in the sea
//	evaluate   methods held against each other on the same overlays
//	version    a new version of a model: learned, calibrated, judged at the gate
//
// Beside both ways:
//
//	noise      random numbers that depend on nothing but their address
//	simulate   satellite feeds whose truth is known
//	realdata   where tests and benchmarks find real files
//	lab        the laboratory: baselines, tables, measurements; never served
//
// Packages on the way of a granule import nothing from that of a model but
// samples and skill, and only a command imports the laboratory: the table in
// daemon/arrows_test.go holds every arrow.
//
// The method is that of *Observation-Aligned Mask Priors for Learning Physical
// Dynamics from Authentic Occlusions* (Ma, Zhou, Yu).
package pipeline
