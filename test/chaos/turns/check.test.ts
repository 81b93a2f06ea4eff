/**
 * The checks of the kill test of turns: every kind of violation is found, and none is reported for
 * a correct history.
 */
import t from 'tap'
import { checkTurns, type Violation, violations } from './check.ts'
import type { Followed, Sent, TurnHistory } from './history.ts'
import { callsOf, kindOf, rowsOf } from './plans.ts'

const shown = (n: number) => ({ status: 'completed', rows: rowsOf(kindOf(n), n) })
const sent = (n: number, more: Partial<Sent> = {}): Sent => ({
  key: `turn ${n}`,
  kind: kindOf(n),
  n,
  session: 0,
  at: 0,
  turn: `turn_${n}`,
  again: [],
  seen: { ...shown(n), at: 1 },
  recorded: shown(n),
  ...more,
})
const followed: Followed = {
  session: 0,
  connections: 2,
  lost: 1,
  folded: 'all',
  fresh: ['all', 'all'],
  back: [],
}
const turns = [0, 1, 2, 3]
const good: TurnHistory = {
  sent: turns.map((n) => sent(n)),
  executions: [
    ...turns.flatMap((n) => callsOf(kindOf(n), n).map((call) => ({ call, at: 0, done: true }))),
    { call: '0/a', at: 0, done: false },
  ],
  followed: [followed],
  onRecord: new Map([[0, turns.map((n) => `turn_${n}`)]]),
  strikes: [],
  oddities: [],
}
const found = (otherwise: Partial<TurnHistory>): Violation['kind'][] => [
  ...new Set(checkTurns({ ...good, ...otherwise }).map(({ kind }) => kind)),
]
const instead = (n: number, more: Partial<Sent>): Pick<TurnHistory, 'sent'> => ({
  sent: turns.map((one) => sent(one, one === n ? more : {})),
})

t.test('a correct history has no violation', async (t) => {
  t.strictSame(checkTurns(good), [])
  t.strictSame(
    [...new Set(turns.map(kindOf))].sort(),
    ['broken', 'chain', 'one', 'pair'],
    'one of each kind',
  )
})

t.test('each kind of violation is found under its name', async (t) => {
  const { turn: _, recorded: __, seen: ___, ...unanswered } = sent(4)
  const cases: readonly (readonly [string, Partial<TurnHistory>, readonly Violation['kind'][]])[] =
    [
      [
        'a message that nobody acknowledged',
        { sent: [...good.sent, unanswered] },
        ['unacknowledged'],
      ],
      [
        'a repeat that started another turn',
        instead(1, { again: ['turn_1', 'turn_9'] }),
        ['doubled'],
      ],
      [
        'a turn that belongs to no message',
        { onRecord: new Map([[0, [...turns.map((n) => `turn_${n}`), 'turn_9']]]) },
        ['doubled'],
      ],
      [
        'a turn that failed',
        instead(1, {
          recorded: { status: 'failed', rows: [] },
          seen: { status: 'failed', rows: [], at: 1 },
        }),
        ['unfinished'],
      ],
      [
        'a turn that still runs',
        instead(1, { recorded: { status: 'running', rows: [] } }),
        ['unfinished', 'wrong'],
      ],
      [
        'a turn that said something else',
        instead(1, { recorded: shown(2), seen: { ...shown(2), at: 1 } }),
        ['result'],
      ],
      [
        'a tool that was done twice',
        { executions: [...good.executions, { call: '0/a', at: 9, done: true }] },
        ['twice'],
      ],
      [
        'a tool that nobody did',
        { executions: good.executions.filter(({ call, done }) => call !== '0/a' || !done) },
        ['skipped'],
      ],
      [
        'an end that was never shown',
        {
          sent: turns.map((n) => {
            const { seen: ____, ...rest } = sent(n)
            return n === 2 ? rest : sent(n)
          }),
        },
        ['unseen'],
      ],
      [
        'an end that was shown before all rows were',
        instead(2, { seen: { status: 'completed', rows: shown(2).rows.slice(0, -1), at: 1 } }),
        ['wrong'],
      ],
      [
        'a fold that differs from a fresh reading',
        { followed: [{ ...followed, fresh: ['all', 'al1'] }] },
        ['differs'],
      ],
      [
        'a turn that went on after its end',
        { followed: [{ ...followed, back: ['turn_1 was completed and then running'] }] },
        ['back'],
      ],
      ['an answer that may not be', { oddities: ['turn 1 was answered 404'] }, ['odd']],
    ]
  for (const [name, otherwise, expected] of cases) t.strictSame(found(otherwise), expected, name)
  t.strictSame(
    new Set(cases.flatMap(([, , kinds]) => kinds)),
    new Set(Object.keys(violations)),
    'every kind is found',
  )
})
