/** The comparison of two source trees whose cost was measured alternately. */
import fc from 'fast-check'
import t from 'tap'
import { compare } from '../../bench/cost/compare.ts'
import { inTurn } from '../../bench/cost/turns.ts'

const rounds = (name: string, ...values: readonly number[]) =>
  values.map((value) => ({ [name]: value }))

t.test('trees are driven in turn, each with all of the load', async (t) => {
  const calls: [tree: number, items: number][] = []
  await inTurn(2, 45, async (tree, items) => void calls.push([tree, items]))
  t.strictSame(
    calls.slice(0, 4).map(([tree]) => tree),
    [0, 1, 1, 0],
    'neither tree is always first',
  )
  for (const tree of [0, 1]) {
    const items = calls.flatMap(([driven, items]) => (driven === tree ? [items] : []))
    t.equal(items.length, 20)
    t.equal(
      items.reduce((sum, part) => sum + part, 0),
      45,
    )
  }
})

t.test('medians and ratios are those of the rounds', async (t) => {
  const [found] = compare(
    rounds('server', 60, 100, 70, 70, 70),
    rounds('server', 100, 125, 100, 100, 100),
  )
  t.match(found, { name: 'server', ours: 70, theirs: 100, verdict: 'less' })
  t.strictSame(found?.ratio, { median: 0.7, min: 0.6, max: 0.8 })
})

t.test('a verdict needs every round, and five of them', async (t) => {
  const verdict = (ours: readonly number[], theirs: readonly number[]) =>
    compare(rounds('server', ...ours), rounds('server', ...theirs))[0]?.verdict
  const [ones, twos] = [Array.from({ length: 5 }, () => 1), Array.from({ length: 5 }, () => 2)]
  t.equal(verdict(ones, twos), 'less')
  t.equal(verdict(twos, ones), 'more')
  t.equal(verdict([1, 1, 1, 1, 3], twos), 'no difference', 'one round disagrees')
  t.equal(verdict([1, 1, 1, 1, 2], twos), 'no difference', 'one round is equal')
  t.equal(verdict(ones.slice(1), twos.slice(1)), 'no difference', 'four rounds are too few')
})

t.test('a ratio compares figures of the same round', async (t) => {
  // In the second round the machine is half as fast. Both trees are equally fast in every round.
  const [found] = compare(rounds('server', 50, 100, 50), rounds('server', 50, 100, 50))
  t.match(found, { ratio: { median: 1, min: 1, max: 1 }, verdict: 'no difference' })
})

t.test('a figure that a tree does not have gets no ratio', async (t) => {
  const compared = compare(
    [{ server: 1, 'view thread': 2 }, { server: 1 }],
    [{ server: 2 }, { server: 4 }],
  )
  t.strictSame(
    compared.map(({ name, ratio }) => [name, ratio.median]),
    [
      ['server', 0.375],
      ['view thread', Number.NaN],
    ],
  )
  t.equal(compared[1]?.verdict, 'no difference')
  const [both] = compare(rounds('bytes', 0, 0), rounds('bytes', 0, 0))
  t.match(both, { ratio: { median: Number.NaN }, verdict: 'no difference' })
})

t.test('the ratio of a tree and itself is 1, and exchanging the trees inverts it', async () => {
  const values = fc.array(fc.double({ min: 0.01, max: 1e6, noNaN: true }), {
    minLength: 5,
    maxLength: 5,
  })
  const close = (a: number | undefined, b: number) => Math.abs((a ?? Number.NaN) / b - 1) < 1e-9
  fc.assert(
    fc.property(values, values, (left, right) => {
      const [ours, theirs] = [rounds('server', ...left), rounds('server', ...right)]
      const [itself] = compare(ours, ours)
      const [forth] = compare(ours, theirs)
      const [back] = compare(theirs, ours)
      const opposite = { less: 'more', more: 'less', 'no difference': 'no difference' } as const
      return (
        itself?.ratio.min === 1 &&
        itself.ratio.max === 1 &&
        close(forth?.ratio.min, 1 / (back?.ratio.max ?? Number.NaN)) &&
        close(forth?.ratio.median, 1 / (back?.ratio.median ?? Number.NaN)) &&
        forth?.verdict === opposite[back?.verdict ?? 'no difference']
      )
    }),
  )
})
