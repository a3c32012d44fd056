package measure

// evaluateHelp returns the help of lacuna evaluate.
func evaluateHelp() string {
	return `Evaluate settles which method fills gaps best on your data. It splits the days by
time, with days of neither side between, trains what the table lists on one side,
and lays the gaps of held-out days over other held-out days: real gaps over known
values, the same for every method. DIR then holds results.md and results.json
with the scores, pictures (PNG), and timing.json.

Tables:
` + evaluateTables() + `
Instead of a table, --methods names rows freely: those of all tables (a wrong
name lists them), imputer:STRATEGY and paper:STRATEGY. The first is what the
others are compared with. "starter" is the model that comes with the program for
the variable, with the mean map of your training days: nothing is trained, and the
table says in minutes whether it is worth more to you than oi. model:VERSION is a
version of --store, and with --store the champion of the dataset is a row too.
These three are judged all the way; a service follows a starter only as far as its
own scored days say.

What the numbers mean:
  MSE           mean squared error where values were hidden, in units of the
                variance: 1 is no better than a constant, 0 is perfect
  against       how much worse (+) or better (-) than the first row, with the
                95 % interval by bootstrap over days; bold: not by chance
  gap MSE       the same, with cells weighted as old and as far away as true gaps
                are; overlays hide clear sky, which is seen again sooner
  PSNR          in dB; compare within a table only
  RMSE, bias    in the units of the variable
  CBGD          seams: 1 is none, more is a visible edge, less a blur; off 1 by
                says how far from none
  CRPS          error of the whole distribution; less is better
  spread/skill  claimed over real error; 1 is honest, less is overconfident; of an
                ensemble, how far members stand from the mean over how far the
                truth does
  90 % covers   share of truths inside the 90 % interval; should be 0.90. In
                brackets where it lies with other days, 95 % by bootstrap
  resolved      shortest wave in cells that is more right than wrong

Sigmas of a case are calibrated on days at least the gap of the split away from
its own. Where there are none, the row says "calibrated on itself": its CRPS and
coverage look better than they are. oi-calibrated is calibrated as networks are.

With --truth, a series without gaps on the same grid and days (such as lacuna
simulate --truth writes), every row is also scored under the real clouds: what
is missing is not missing at random, and the difference says how much that
matters.

--covariate NAME=FILE:VARIABLE names another variable that may say what clouds hide,
such as a temperature beside chlorophyll (see lacuna fill --help). It is fitted on days
that learn and chosen by days that choose; what each brings to optimal interpolation,
and to every version in the table that was trained with covariates, is said on the
held-out days, with the 95 % interval, before the table and in DIR/covariates.json: over
the others that are used or, where it is not used, beside them. All rows that build on
optimal interpolation then have those that pay; a version sees its own.

A series of few days, such as a month, wants --gap-days and --block-days of a
few days; its intervals are then somewhat too narrow.

--synthetic gaussian needs no data: it makes a Gaussian random field under
clouds and compares with exact kriging, the best that anything can do there.

Time: each network of a table is trained once for every seed: on a processor a
small one for 800 steps with one seed and 200 overlays, on a GPU a base one for
5000 steps with three seeds and all overlays, and a mask prior besides where a
strategy is guided. --steps, --size and --overlays make it shorter and rougher.

The run can be stopped at any moment, by kill -9 too. Rows that are done are
kept in DIR: the same command goes on, and ends with the same results.json.

Exit status: 0 done, 1 stopped or failed, 2 usage.`
}
