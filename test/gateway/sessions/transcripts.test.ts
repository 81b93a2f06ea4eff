/**
 * Clients that follow a session under random faults. Invariant: once the faults stop, every client
 * agrees with the pages.
 */
import fc from 'fast-check'
import t from 'tap'
import { queryUntilCurrent } from '../../../gateway/sessions/transcript/followed.ts'
import type { TranscriptPage } from '../../../protocol/sessions/transcript/pages.ts'
import { perform, type Step, step, tools } from '../../actors/sessions/histories.ts'
import { kept, Meeting } from './transcript-world.ts'

type Act =
  | { readonly act: 'history'; readonly step: Step }
  | {
      readonly act: 'step' | 'speak' | 'read' | 'connect' | 'break' | 'expire' | 'join'
      readonly n: number
    }
const emptyPage: TranscriptPage = {
  after: 0,
  through: 0,
  cut: 0,
  more: false,
  revision: 0,
  last: 0,
  messages: [],
  turns: [],
  interactions: [],
  active: [],
  live: [],
  pending: [],
}
const n = fc.nat(999)
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 8, arbitrary: step.map((one): Act => ({ act: 'history', step: one })) },
  { weight: 30, arbitrary: fc.record({ act: fc.constant('step' as const), n }) },
  { weight: 10, arbitrary: fc.record({ act: fc.constant('speak' as const), n }) },
  { weight: 12, arbitrary: fc.record({ act: fc.constant('read' as const), n }) },
  {
    weight: 6,
    arbitrary: fc.record({
      act: fc.constantFrom('connect' as const, 'connect' as const, 'break' as const),
      n,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ act: fc.constantFrom('expire' as const, 'join' as const), n }),
  },
)
const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

t.setTimeout(240_000)
t.test(
  'under loss, delay, repetition and disconnects, every follower reaches the state of the pages',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.infiniteStream(fc.nat(1_000_000)),
        fc.array(act, { minLength: 20, maxLength: 250 }),
        fc.integer({ min: 1, max: 3 }),
        async (numbers, acts, rests) => {
          const at = new Meeting((below) =>
            below <= 1 ? 0 : (numbers.next().value as number) % below,
          )
          at.story.invoke('first', { input: { idempotency_key: 'k0' } }, tools)
          at.commit()
          at.client('v2', 'start')
          at.client('v2', 'start')
          at.client('v1', 'start')
          for (const [index, one] of acts.entries()) {
            const of = 'n' in one ? at.clients[one.n % at.clients.length] : undefined
            switch (one.act) {
              case 'history':
                perform(at.story, one.step, index)
                at.commit()
                break
              case 'step':
                await at.step()
                break
              case 'speak':
                at.speak(one.n)
                break
              case 'read':
                if (of) at.read(of, 1 + (one.n % 4))
                break
              case 'connect':
                if (of) void at.connect(of, one.n)
                break
              case 'break':
                of?.close()
                break
              case 'expire':
                at.expire()
                break
              case 'join':
                if (at.clients.length < 6)
                  at.client(one.n % 3 === 0 ? 'v1' : 'v2', one.n % 2 === 0 ? 'start' : 'newest')
            }
            // The clients are compared with the pages at the end and, if `rests` is 2 or 3, also
            // once earlier.
            if (index !== acts.length - 1 && index !== Math.floor(acts.length / rests)) continue
            at.lossy = false
            at.speak(index)
            await at.rest()
            const fresh = await at.fresh()
            const wanted = kept(fresh)
            for (const [which, client] of at.clients.entries()) {
              if (client.version === 'v1') {
                const newest = at.numbers()
                if (!same(client.numbers, newest))
                  throw new Error(
                    `client ${which} was given ${client.numbers.join()} instead of ${newest.join()}`,
                  )
              } else {
                if (!client.transcript.ready) throw new Error(`client ${which} is not ready`)
                const got = kept(client.transcript)
                const rows = got['rows'] as { id: string }[]
                const all = wanted['rows'] as { id: string }[]
                const from = all.findIndex(({ id }) => id === rows[0]?.id)
                const mine = {
                  ...wanted,
                  rows: all.slice(Math.max(0, from)),
                  turns: (wanted['turns'] as { id: string }[]).filter(({ id }) =>
                    client.transcript.turns.has(id),
                  ),
                }
                if (!same(got, mine))
                  throw new Error(
                    `client ${which} has\n${JSON.stringify(got)}\ninstead of\n${JSON.stringify(mine)}`,
                  )
                if (client.transcript.interactions.size === 0 && client.transcript.turns.size === 0)
                  throw new Error('nothing came')
              }
            }
            at.lossy = true
          }
          at.close()
        },
      ),
      { numRuns: Number(process.env['TRANSCRIPT_RUNS'] ?? 60), endOnFailure: true },
    )
  },
)

t.test('a cursor after the end of the session is answered from its start', async (t) => {
  const asked: (true | undefined)[] = []
  const page = await queryUntilCurrent(
    async (restart) => {
      asked.push(restart)
      return { ...emptyPage, after: restart ? 0 : 20, revision: 15 }
    },
    () => Promise.resolve(),
  )
  t.equal('refused' in page || page.after, 0)
  t.equal(asked.at(-1), true)
  t.ok(asked.slice(0, -1).every((restart) => restart === undefined))
})
