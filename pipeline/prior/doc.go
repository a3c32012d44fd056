// Package prior learns what real gaps look like, and draws masks like them that
// split what was observed of a map.
//
// The learned prior is a Bayesian Flow Network over binary masks. Model holds
// its frozen weights; Train fits one to the masks of a samples.Train; a sample
// is drawn by walking the probability-flow ODE from noise to a mask in a few
// steps. Guidance pulls the walk towards a thinned copy of an observation, so
// that the mask shares part of it, and only part.
//
//	masks ──Train──▶ Model ──NewUnconditional, NewGuided──▶ partition.Strategy
//	                   └──Surprises (drift), Exhibits (contact sheet)
//
// Everything drawn depends on the address of its noise alone: the same model,
// patches and stream give the same partitions, and an item does not depend on
// its neighbours in a batch. Both strategies give a partition for every draw.
//
// Package prior does not know the values of a map, nor what an imputer makes of
// a partition, nor how a network is trained: package train does that, and keeps
// its checkpoint. It reads and writes no file itself.
package prior
