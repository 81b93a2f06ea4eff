/** Lookups of host names whose name servers do not answer, beside those of other projects. */
import t from 'tap'
import { createLookups, lookupsOf } from '../../../nodes/outbound/lookups.ts'

/** Lookups that end when the test answers them. */
function manual(total: number) {
  const begun = new Map<string, (addresses: readonly string[] | Error) => void>()
  const order: string[] = []
  const lookUp = createLookups((name) => {
    order.push(name)
    return new Promise((resolve, reject) => {
      begun.set(name, (found) => (found instanceof Error ? reject(found) : resolve(found)))
    })
  }, total)
  const answer = (name: string, found: readonly string[] | Error = ['192.0.2.1']): void =>
    begun.get(name)?.(found)
  return { lookUp, answer, order }
}

t.test('many hosts that do not answer delay only the lookups of their project', async (t) => {
  const { lookUp, answer, order } = manual(2)
  const first = lookUp('dead0', { owner: 'prj_1' })
  for (let n = 1; n < 20; n++) void lookUp(`dead${n}`, { owner: 'prj_1' })
  const good = lookUp('good', { owner: 'prj_2' })
  t.strictSame(order, ['dead0', 'good'])
  answer('good')
  t.strictSame(await good, ['192.0.2.1'])
  t.equal(order.length, 2, 'the second turn remains for other projects')
  answer('dead0', new Error('EAI_AGAIN'))
  await t.rejects(first, { message: 'EAI_AGAIN' })
  t.strictSame(order.slice(2), ['dead1'])
})

t.test('projects take turns', async (t) => {
  const { lookUp, answer, order } = manual(2)
  const all = ['a1', 'b1', 'a2', 'a3', 'c1', 'b2'].map((name) =>
    lookUp(name, { owner: name.charAt(0) }),
  )
  for (let n = 0; n < all.length; n++) {
    answer(order[n] ?? '')
    await new Promise(setImmediate)
  }
  await Promise.all(all)
  t.strictSame(order, ['a1', 'b1', 'a2', 'c1', 'b2', 'a3'])
})

t.test('a lookup for which no caller waits is not begun', async (t) => {
  const { lookUp, answer, order } = manual(2)
  const gone = new AbortController()
  const first = lookUp('first', { owner: 'a' })
  const second = lookUp('second', { owner: 'a', signal: gone.signal })
  const late = lookUp('shared', { owner: 'a', signal: gone.signal })
  const shared = lookUp('shared', { owner: 'a' })
  gone.abort(new Error('late'))
  await t.rejects(second, { message: 'late' })
  await t.rejects(late, { message: 'late' })
  answer('first')
  await first
  t.strictSame(order, ['first', 'shared'])
  answer('shared')
  t.strictSame(await shared, ['192.0.2.1'])
  const again = lookUp('second', { owner: 'a' })
  t.equal(order.at(-1), 'second', 'but a later caller begins it')
  answer('second')
  await again
})

t.test('a name that waits for one project is looked up in the turn of another', async (t) => {
  const { lookUp, answer, order } = manual(2)
  const callers = [
    lookUp('dead', { owner: 'a' }),
    lookUp('shared', { owner: 'a' }),
    lookUp('shared', { owner: 'b' }),
  ]
  t.strictSame(order, ['dead', 'shared'])
  answer('shared')
  answer('dead')
  await Promise.all(callers)
  t.equal(order.length, 2, 'once for all of its callers')
})

t.test('the number of lookups follows the number of threads', async (t) => {
  t.strictSame(['1', '4', '16', '64', 'x', undefined].map(lookupsOf), [2, 2, 6, 24, 2, 2])
})
