// Package consumer receives products from the topics that package kafka fills.
//
// A Consumer is a member of a consumer group on the events topic. For every
// event it collects the parts from the data topic into a file, one part in
// memory at a time, checks size and SHA-256, and hands the file over. A file
// that is handed over is complete and has the bytes of the product; a product
// that cannot be read is reported with the reason, and the next one follows:
// parts that lie beyond the end of their topic, or that a broker which answers
// cannot give, are waited for no longer than Patience, and a broker that is
// away as long as it takes. Products of a dataset come in the order in which
// they were published, each revision once: repetitions are recognised by their
// id among the last ten thousand events of a partition, also after a restart
// and after another member of the group has taken over. A product whose parts
// were gone is handed over again when it is replayed, as long as this consumer
// runs; for a group that was restarted since it is a repetition.
//
// Topics that were deleted and made again are read from their beginning, also
// where that went unseen and they have as many events as before: the last event
// that was read is looked up now and then. Only a process that starts on a
// commit of the old topic cannot tell.
//
// An offset is committed after the handler has returned. A crash between the
// two makes the handler see that one product again.
//
// Package consumer knows nothing of NetCDF, nor of the use of a product.
package consumer
