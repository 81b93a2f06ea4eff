/** The pool shares followers between clients, checks them regularly, and closes unused ones. */
import t from 'tap'
import { openFollowerPool } from '../../../gateway/streams/follower-pool.ts'
import { fakeWorld } from '../../support/fake-world.ts'

function stage() {
  const timers = new Set<() => void>()
  const log: string[] = []
  let open = 0
  const world = fakeWorld({
    later: (_ms: number, run: () => void) => {
      timers.add(run)
      return () => void timers.delete(run)
    },
    settings: { keepalive: 15_000 },
    count: {
      open: (_name: string, change: number) => {
        open += change
      },
    },
  })
  const pool = openFollowerPool<{ follower: { check(): void }; close(): void }>(world)
  return {
    pool,
    log,
    timers,
    open: () => open,
    member: (name: string) => () => ({
      follower: { check: () => void log.push(`check ${name}`) },
      close: () => void log.push(`close ${name}`),
    }),
    pass: () => {
      for (const run of [...timers]) {
        timers.delete(run)
        run()
      }
    },
  }
}

t.test('clients of a sequence share a follower until the last one has left', async (t) => {
  const it = stage()
  const first = it.pool.acquire('a', it.member('a'))
  const second = it.pool.acquire('a', it.member('another a'))
  const other = it.pool.acquire('b', it.member('b'))
  t.equal(second.member, first.member)
  t.same(it.pool.members(), [first.member, other.member])
  t.equal(it.open(), 2)
  first.release()
  first.release()
  t.same(it.log, [], 'a repeated release does not count')
  second.release()
  t.same(it.log, ['close a'])
  t.equal(it.open(), 1)
  const again = it.pool.acquire('a', it.member('new a'))
  t.not(again.member, first.member, 'a later client gets a new follower')
})

t.test('followers in use are checked again and again', async (t) => {
  const it = stage()
  const { release } = it.pool.acquire('a', it.member('a'))
  it.pass()
  it.pass()
  t.same(it.log, ['check a', 'check a'])
  release()
  t.equal(it.timers.size, 0, 'no timer of an unused follower is left')
})
