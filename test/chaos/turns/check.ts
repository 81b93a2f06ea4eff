/**
 * Checks the history of a kill test of turns. All functions are pure and depend only on the given
 * history.
 */
import type { Sent, TurnHistory } from './history.ts'
import { callsOf, rowsOf } from './plans.ts'

export const violations = {
  unacknowledged: 'messages never acknowledged',
  doubled: 'messages that started two turns',
  unfinished: 'turns that have not completed',
  result: 'turns that said something else than their script',
  twice: 'tools done twice',
  skipped: 'tools of completed turns that nobody did',
  unseen: 'ends that their follower never showed',
  wrong: 'ends that their follower showed otherwise',
  differs: 'folded transcripts unlike the fresh ones',
  back: 'turns shown as going on after their end',
  odd: 'answers that may not be',
} as const
type ViolationKind = keyof typeof violations
export interface Violation {
  readonly kind: ViolationKind
  readonly what: string
}

const same = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((one, i) => one === b[i])

export function checkTurns(history: TurnHistory): Violation[] {
  return [
    ...history.sent.flatMap((sent) => [...checkTurn(sent)]),
    ...checkTools(history),
    ...checkRecords(history),
    ...checkFollowers(history),
    ...history.oddities.map((what) => ({ kind: 'odd' as const, what })),
  ]
}

function* checkTurn({ key, kind, n, turn, again, seen, recorded }: Sent): Generator<Violation> {
  if (turn === undefined) {
    yield { kind: 'unacknowledged', what: key }
    return
  }
  const other = again.find((one) => one !== turn)
  if (other !== undefined)
    yield { kind: 'doubled', what: `${key} was answered ${turn} and then ${other}` }
  const wanted = rowsOf(kind, n)
  if (recorded?.status !== 'completed')
    yield {
      kind: 'unfinished',
      what: `${key}: ${turn} is ${recorded?.status ?? 'not on record'}: ${recorded?.rows.join(' | ') ?? ''}`,
    }
  else if (!same(recorded.rows, wanted))
    yield { kind: 'result', what: `${key}: ${turn} is ${recorded.rows.join(' | ')}` }
  if (!seen) yield { kind: 'unseen', what: `${key}: ${turn}` }
  else if (recorded && (seen.status !== recorded.status || !same(seen.rows, recorded.rows)))
    yield {
      kind: 'wrong',
      what: `${key}: ${turn} was shown as ${seen.status}: ${seen.rows.join(' | ')}`,
    }
}

function* checkTools({ sent, executions }: TurnHistory): Generator<Violation> {
  const done = new Map<string, number>()
  for (const { call, done: ended } of executions)
    if (ended) done.set(call, (done.get(call) ?? 0) + 1)
  for (const [call, times] of done)
    if (times > 1) yield { kind: 'twice', what: `${call}, ${times} times` }
  for (const { key, kind, n, recorded } of sent) {
    if (recorded?.status !== 'completed') continue
    for (const call of callsOf(kind, n))
      if (!done.has(call)) yield { kind: 'skipped', what: `${key}: ${call}` }
  }
}

function* checkRecords({ sent, onRecord }: TurnHistory): Generator<Violation> {
  const known = new Set(sent.map(({ turn }) => turn))
  for (const [session, turns] of onRecord)
    for (const turn of turns)
      if (!known.has(turn))
        yield { kind: 'doubled', what: `${turn} of session ${session} belongs to no message` }
}

function* checkFollowers({ followed }: TurnHistory): Generator<Violation> {
  for (const { session, folded, fresh, back } of followed) {
    const other = fresh.find((one) => one !== folded)
    if (other !== undefined)
      yield { kind: 'differs', what: `session ${session}: ${firstDifference(folded, other)}` }
    for (const turn of back) yield { kind: 'back', what: `session ${session}: ${turn}` }
  }
}
function firstDifference(a: string, b: string): string {
  let at = 0
  while (a[at] === b[at] && at < a.length) at++
  return `…${a.slice(Math.max(0, at - 60), at + 60)} instead of …${b.slice(Math.max(0, at - 60), at + 60)}`
}
