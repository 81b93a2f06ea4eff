/** Nodes report which actors they follow, and owners publish only entries that may be followed. */
import fc from 'fast-check'
import t from 'tap'
import {
  InterestOfOthers,
  type InterestReport,
  OwnInterest,
} from '../../../nodes/host/cluster/interest.ts'
import { ManualClock, settleAll } from '../../support/memory.ts'

const subject = (n: number): string => `live.prj_1.run.run_${n}`
/** Milliseconds after which a report no longer counts. */
const RECENT_MS = 10_000

function follower(clock: ManualClock, owners: readonly string[] = ['owner'], instance = 'i1') {
  const sent: InterestReport[] = []
  let hold: Promise<void> | undefined
  const own = new OwnInterest({
    node: 'gateway',
    instance,
    clock,
    owners: () => owners,
    report: async (_, report) => {
      sent.push(report)
      await hold
    },
  })
  return { own, sent, holdReports: (until: Promise<void> | undefined) => (hold = until) }
}

t.test('a query waits until the owners have the report of what is followed', async (t) => {
  const { own, sent, holdReports } = follower(new ManualClock())
  t.equal(own.settled(), undefined, 'nothing is followed')
  let arrive = () => {}
  holdReports(new Promise<void>((resolve) => (arrive = resolve)))
  own.follow(subject(1))
  own.follow(subject(2))
  let settled = false
  const waiting = own.settled()?.then(() => (settled = true))
  t.ok(waiting)
  await settleAll()
  t.equal(sent.length, 1, 'what is followed in one turn is reported together')
  t.notOk(settled)
  arrive()
  await waiting
  t.equal(own.settled(), undefined)
  own.follow(subject(1))
  t.equal(own.settled(), undefined, 'the owners know already')
  t.equal(sent.length, 1)
})

t.test('a subject that is followed during a report is reported again', async (t) => {
  const { own, sent, holdReports } = follower(new ManualClock())
  const others = new InterestOfOthers(new ManualClock(), () => ['gateway'])
  let arrive = () => {}
  holdReports(new Promise<void>((resolve) => (arrive = resolve)))
  own.follow(subject(1))
  await settleAll()
  own.follow(subject(2))
  const waiting = own.settled()
  t.equal(sent.length, 2)
  arrive()
  await waiting
  // The older report arrives late.
  for (const report of sent.toReversed()) others.note(report)
  t.ok(others.wants(subject(1)) && others.wants(subject(2)))
})

t.test('a node without owners to report to does not wait', async (t) => {
  const { own, sent } = follower(new ManualClock(), [])
  own.follow(subject(1))
  t.equal(own.settled(), undefined)
  await settleAll()
  t.strictSame(sent, [])
})

t.test(
  'reports are repeated, and a bit is cleared some time after its last follower',
  async (t) => {
    const clock = new ManualClock()
    const { own, sent } = follower(clock)
    const stop = own.start()
    const others = new InterestOfOthers(clock, () => ['gateway'])
    const deliver = () => {
      for (const report of sent.splice(0)) others.note(report)
    }
    const first = own.follow(subject(1))
    const second = own.follow(subject(1))
    await own.settled()
    deliver()
    t.ok(others.wants(subject(1)))
    t.notOk(others.wants(subject(2)))
    first()
    first()
    await clock.advance(20_000)
    deliver()
    t.ok(others.wants(subject(1)), 'it has another follower')
    second()
    await clock.advance(4000)
    deliver()
    t.ok(others.wants(subject(1)), 'a client may follow it again soon')
    await clock.advance(4000)
    deliver()
    t.notOk(others.wants(subject(1)))
    await stop()
    await clock.advance(10_000)
    t.strictSame(sent, [], 'a stopped node reports nothing')
  },
)

t.test('every actor counts as followed without a recent report of each node', async (t) => {
  const clock = new ManualClock()
  const nodes = ['gateway']
  const others = new InterestOfOthers(clock, () => nodes)
  t.ok(others.wants(subject(1)) && others.wantsMuch(), 'no report yet')
  const { own, sent } = follower(clock)
  const report = async () => {
    own.follow(subject(0))
    await own.settled()
    others.note(sent.at(-1) as InterestReport)
  }
  await report()
  t.notOk(others.wants(subject(1)) || others.wantsMuch())
  await clock.advance(RECENT_MS)
  t.ok(others.wants(subject(1)) && others.wantsMuch(), 'the report is old')
  others.note({ ...(sent.at(-1) as InterestReport), number: 2 })
  t.notOk(others.wants(subject(1)))
  others.joined()
  t.ok(others.wants(subject(1)), 'a node that has joined may not be known yet')
  await clock.advance(2000)
  t.notOk(others.wants(subject(1)))
  nodes.push('older release')
  await clock.advance(200)
  t.ok(others.wants(subject(1)) && others.wantsMuch(), 'nodes of older releases never report')
})

t.test('the first report of a new process replaces those of its predecessor', async (t) => {
  const clock = new ManualClock()
  const others = new InterestOfOthers(clock, () => ['gateway'])
  const [before, after] = [follower(clock), follower(clock, ['owner'], 'i2')]
  for (const n of [1, 2, 3]) {
    before.own.follow(subject(n))
    await before.own.settled()
  }
  others.note(before.sent.at(-1) as InterestReport)
  after.own.follow(subject(4))
  await after.own.settled()
  others.note(after.sent.at(-1) as InterestReport)
  t.strictSame(
    [1, 2, 3, 4].map((n) => others.wants(subject(n))),
    [false, false, false, true],
  )
})

t.test(
  'a report that repeats an old one counts again, whatever others reported between',
  async (t) => {
    const clock = new ManualClock()
    const others = new InterestOfOthers(clock, () => ['gateway'])
    const [one, two] = [follower(clock), follower(clock)]
    const report = async ({ own, sent }: typeof one, node: string, n: number) => {
      own.follow(subject(n))
      await own.settled()
      others.note({ ...(sent.at(-1) as InterestReport), node })
    }
    await report(one, 'gateway', 1)
    for (const after of [RECENT_MS, 7 * RECENT_MS]) {
      await clock.advance(after)
      await report(two, 'second', after)
      others.note({ ...(one.sent.at(-1) as InterestReport), number: after })
      t.ok(others.wants(subject(1)))
      t.notOk(others.wants(subject(2)))
    }
  },
)

t.test('many followed actors count as much; reports of several nodes are combined', async (t) => {
  const clock = new ManualClock()
  const others = new InterestOfOthers(clock, () => ['gateway', 'second'])
  const few = follower(clock)
  few.own.follow(subject(0))
  await few.own.settled()
  others.note(few.sent.at(-1) as InterestReport)
  const many = follower(clock)
  for (let n = 1; n <= 200; n++) many.own.follow(subject(n))
  await many.own.settled()
  others.note({ ...(many.sent.at(-1) as InterestReport), node: 'second' })
  t.ok(others.wantsMuch())
  t.ok(Array.from({ length: 201 }, (_, n) => others.wants(subject(n))).every(Boolean))
  t.notOk(Array.from({ length: 400 }, (_, n) => others.wants(subject(1000 + n))).every(Boolean))
})

t.test(
  'whatever is followed and settled is wanted, although reports get lost or are late',
  async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('follow' as const), n: fc.nat(5) }),
      fc.record({ do: fc.constant('leave' as const), n: fc.nat(5) }),
      fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(100, 1000, 3000, 12_000) }),
      fc.record({ do: fc.constant('deliver' as const), n: fc.nat(9) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const clock = new ManualClock()
        const others = new InterestOfOthers(clock, () => ['gateway'])
        /** Reports on their way. Those that a query waits for arrive at once, others late or never. */
        const late: InterestReport[] = []
        let direct = false
        const own = new OwnInterest({
          node: 'gateway',
          instance: 'i1',
          clock,
          owners: () => ['owner'],
          report: async (_, report) => {
            if (direct) others.note(report)
            else late.push(report)
          },
        })
        const stop = own.start()
        const followed: (() => void)[][] = Array.from({ length: 6 }, () => [])
        for (const one of steps) {
          if (one.do === 'follow') {
            direct = true
            followed[one.n]?.push(own.follow(subject(one.n)))
            await own.settled()
            direct = false
          } else if (one.do === 'leave') followed[one.n]?.pop()?.()
          else if (one.do === 'pass') await clock.advance(one.ms)
          else for (const report of late.splice(one.n % (late.length + 1), 1)) others.note(report)
          for (const [n, users] of followed.entries())
            if (users.length > 0 && !others.wants(subject(n))) return false
        }
        await stop()
        return true
      }),
    )
  },
)
