package nn

// Operations returns how many multiplications and additions one image of height x
// width takes, in convolutions and attention; the rest is below a hundredth.
func (u *UNet) Operations(height, width int) float64 {
	first, last := u.lift.kernel.Size(), u.last.Size()
	sum := float64(height*width) * float64(first+last)
	for level := range u.down {
		h, w := height>>level, width>>level
		for _, way := range [][][]residual{u.down, u.up} {
			for _, b := range way[level] {
				sum += b.products(h, w)
			}
		}
	}
	return 2 * sum // each product is added to others
}

// products returns the products of a block for an image of height x width.
func (r residual) products(height, width int) float64 {
	places := float64(height * width)
	weights := r.first.kernel.Size() + r.second.kernel.Size()
	if r.short != nil {
		weights += r.short.kernel.Size()
	}
	if !r.shape.attention {
		return places * float64(weights)
	}
	weights += r.qkv.kernel.Size() + r.merge.kernel.Size()
	keys := places
	if r.keys > 0 && height*width > r.keys {
		side := poolSide(height, width, r.keys)
		keys = float64(ceilDiv(height, side) * ceilDiv(width, side))
	}
	return places * (float64(weights) + 2*keys*float64(r.shape.out)) // scores, and the sum that they weigh
}
