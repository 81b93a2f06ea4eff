/** The spending of a loop's runs, and the limits of the loop. */
import { useMemo } from 'preact/hooks'
import type { Loop } from '../../../protocol/loops/schema.ts'
import { useList } from '../../api/query.ts'
import { formatNumber, formatUsd } from '../../text/format.ts'
import { loopsText as text } from './text.ts'
import { policyWords } from './words.ts'

const DAY_MS = 86_400_000
const PAGE_SIZE = 100
const usd = (credits: number): string => formatUsd(credits / 100)

/** Shows the limits, and the spending of the runs that were created in the last 24 hours. */
export function Budget({ project, loop }: { readonly project: string; readonly loop: Loop }) {
  const { limits = {}, concurrency = 'allow' } = loop
  const since = useMemo(() => new Date(Date.now() - DAY_MS).toISOString(), [loop.id])
  const runs = useList(
    'run.list',
    { project, loop_id: loop.id, created_after: since, limit: PAGE_SIZE },
    { kinds: ['run'] },
  ).state.value
  const spent = runs.items.reduce(
    (sum, run) => sum + ('credit_spent' in run ? (run.credit_spent ?? 0) : 0),
    0,
  )
  const daily =
    limits.daily_budget_usd ||
    (limits.daily_credit_budget ? limits.daily_credit_budget / 100 : undefined)
  const perRun = limits.budget_usd
    ? formatUsd(limits.budget_usd)
    : limits.credit_budget
      ? text.credits(formatNumber(limits.credit_budget))
      : undefined
  const amount = runs.more ? text.atLeast(usd(spent)) : usd(spent)
  return (
    <section class="card">
      <header>
        <h2>{text.spending}</h2>
      </header>
      <div class="body stack close">
        <div class="budget">
          <span class="soft">{text.spent}</span>
          <strong>
            {amount} {daily !== undefined && text.ofDay(formatUsd(daily))}
          </strong>
          {daily !== undefined && (
            <progress max={daily} value={spent / 100} aria-label={text.spent} />
          )}
        </div>
        <dl class="facts">
          {perRun !== undefined && (
            <>
              <dt>{text.perRun}</dt>
              <dd>{perRun}</dd>
            </>
          )}
          {limits.pause_after_consecutive_failures ? (
            <>
              <dt>{text.failures}</dt>
              <dd>{limits.pause_after_consecutive_failures}</dd>
            </>
          ) : null}
          <dt>{text.concurrency}</dt>
          <dd>{policyWords[concurrency]}</dd>
        </dl>
        {daily === undefined && perRun === undefined && <p class="small soft">{text.noLimits}</p>}
      </div>
    </section>
  )
}
