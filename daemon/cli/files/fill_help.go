package files

// fillHelp is the help of lacuna fill.
const fillHelp = `Fill reads granules, fills their gaps and writes one product for each: IN_l4.nc
in DIR, on the same grid, with an uncertainty and a flag for every pixel. It
prints the path of each product. Observed pixels keep their exact values.

Neighbouring days make the analysis better: give them with --history, or put
several days into one call or one file; every input is a neighbour of the
others. Only days within the window (--past-days, --future-days) are looked at,
by default the one with which methods were judged; --future-days 0 makes what a
near-real-time service could have made. Of a series coarser than daily, such as
8-day or monthly means, they count its steps; of a finer one --past and --future
give the window in hours. The constants of optimal interpolation are tuned once,
on the latest of all days that were given; with --future-days 0 on those before
each, again when they have doubled.

--model names what fills: oi (optimal interpolation), persistence, climatology,
"starter", a version of the model store, "champion", or the file of an imputer. With
--store and without --model it is the champion. Without both it is oi and, for
chlorophyll and sea surface temperature where at least ten days are given, as
much of the way from there to the starter model that comes with the program as
those days say: up to twenty of them are filled under the gaps of others by both,
and the starter is followed as far as that shows beyond chance that it is right.
What fills, how far and why is said on standard error, and in the product. A model
that is named is followed all the way. A model makes a tier: fast looks once,
standard draws 4 members beside that, full draws 16 by recursive jump, whose spread then is the uncertainty; --deadline takes the best
that this machine makes of a field in time. --details adds to the product how
far the nearest observations are and, where the model knows it, how reliable a
pixel is. --layout ghrsst or cmems gives the product the names, units and packing
of those communities. --members-file writes members, complete fields that are equally likely,
into IN_l4_members.nc; --members says how many. Any method has them: those
without a network of their own simulate them, each for the time of another
filling. A product says when it was made; with SOURCE_DATE_EPOCH in the
environment, a number of seconds since 1970, it says that time instead, and the
same input, model and seed give the same bytes on the same engine.

What is sea is said by the granule's own mask, else by the built-in one, to which
lakes are land. Where that calls most of the observed cells land, the mask is
learned instead: a cell that any of the given days shows is water. This is said
on standard error, and in the product; --mask says it outright.

--covariate names another variable as NAME=FILE:VARIABLE, such as a temperature
beside chlorophyll, whose anomalies may say what clouds hide: FILE is a file with
times, a folder, or a template with {year}, {month} and {day}. A ridge regression is
fitted on the earlier half of the days that are given and judged on the later, and
only what pays there is used (40 days at least); what each brings is said on
standard error. Add ,gradient to use the magnitude of its gradient too, or ,bathymetry
for a map that stays; NAME=day_of_year and NAME=distance_to_coast need no file. With
--future-days 0 no map of a later day is used.

--tests takes observations out that other observations contradict, and fills them:
range (off the days around, or the climatology of a file), edge (beside a gap, as
thin cloud) and spike. How many each refused is said on standard error, and in the
product. Without it every observation is used. With --sea-ice pixels under ice are
flagged and have no value, and what was observed there is not used.

The variable, its transform and its valid range are found out from the file;
'lacuna inspect FILE' shows what was found, and --product, --var and the config
of the daemon say it outright.

Exit status: 0 all filled, 1 some could not be (the others are), 2 usage.`
