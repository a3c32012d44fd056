// Package prior is the network that has learned what real gaps look like. It
// draws masks like them, says how likely a mask is, and splits observations.
//
// The prior is a Bayesian Flow Network over binary masks (Graves, Srivastava,
// Atkinson and Gomez, Bayesian Flow Networks, 2023), guided as in Ma, Zhou and
// Yu, Observation-Aligned Mask Priors for Learning Physical Dynamics from
// Authentic Occlusions. A Model holds its frozen weights. A mask is drawn by
// walking the probability-flow ODE from noise in a few steps; guidance pulls the
// walk towards a thinned copy of an observation, so that the mask shares part of
// it, and only part.
//
//	file ──Load──▶ Model ──NewUnconditional, NewGuided──▶ partition.Strategy
//	                 ├──Draw, DrawGuided──▶ masks
//	                 └──BitsPerPixel, Surprises──▶ likelihood of masks: drift
//
// Everything drawn depends on the address of its noise alone: the same model,
// patches and stream give the same partitions, and an item does not depend on
// its neighbours in a batch. Both strategies give a partition for every draw.
//
// Package prior does not know the values of a map, nor what an imputer makes of
// a partition, nor how its network is trained: package learn does that with
// Logits and FillConditions. It reads and writes no file itself.
package prior
