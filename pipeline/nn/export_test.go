package nn

// Blocks are the images after each block of a UNet, for tests.
var Blocks = (*UNet).blocks
