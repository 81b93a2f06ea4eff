/** The order of work at the end of a turn of the event loop. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { createTurnEnd } from '../../../nodes/nats/turn-end.ts'

t.test('commands are decided, then messages leave, then earlier work is done', async (t) => {
  const turnEnd = createTurnEnd()
  const done: string[] = []
  const work = (name: string) => () => void done.push(name)
  turnEnd.expectResponses()
  turnEnd.defer(work('deferred 1'))
  turnEnd.send(work('sent 1'))
  turnEnd.decide(() => {
    done.push('decided 1')
    // As in the loop of a shard, the append is sent in a microtask.
    void Promise.resolve().then(() => turnEnd.send(work('sent by decision 1')))
  })
  t.strictSame(done, [])
  await nextTurn()
  t.strictSame(done, ['decided 1', 'sent 1', 'sent by decision 1'])

  turnEnd.expectResponses()
  turnEnd.defer(work('deferred 2'))
  turnEnd.send(work('sent 2'))
  turnEnd.decide(work('decided 2'))
  await nextTurn()
  t.strictSame(done.slice(3), ['decided 2', 'sent 2', 'deferred 1'])
  await nextTurn()
  t.strictSame(done.slice(6), ['deferred 2'], 'also without other work')
})

t.test('work waits for the next turn only while responses are expected', async (t) => {
  const turnEnd = createTurnEnd()
  const done: string[] = []
  const work = (name: string) => () => void done.push(name)
  turnEnd.defer(work('no responses'))
  turnEnd.send(work('sent'))
  t.equal(turnEnd.responses(), undefined)
  await nextTurn()
  t.strictSame(done, ['sent', 'no responses'])

  turnEnd.defer(work('before'))
  turnEnd.expectResponses()
  turnEnd.defer(work('responses'))
  void turnEnd.responses()?.then(work('after responses'))
  await nextTurn()
  t.strictSame(done.slice(2), ['before'])
  turnEnd.defer(work('next turn'))
  await nextTurn()
  t.strictSame(done.slice(3), ['responses', 'next turn', 'after responses'])
})

t.test('work that is passed on at the end of a turn is not forgotten', async (t) => {
  const turnEnd = createTurnEnd()
  const done: string[] = []
  const again = (kind: 'decide' | 'send' | 'defer') => () => {
    done.push(kind)
    turnEnd[kind](() => done.push(`${kind} again`))
  }
  turnEnd.decide(again('decide'))
  turnEnd.send(again('send'))
  turnEnd.expectResponses()
  turnEnd.defer(again('defer'))
  for (let turns = 0; turns < 4; turns++) await nextTurn()
  t.strictSame(done, ['decide', 'send', 'decide again', 'send again', 'defer', 'defer again'])
})

t.test('functions of one kind run in order', async (t) => {
  const turnEnd = createTurnEnd()
  const done: string[] = []
  turnEnd.expectResponses()
  for (const kind of ['defer', 'send', 'decide'] as const)
    for (const n of [1, 2, 3]) turnEnd[kind](() => done.push(`${kind} ${n}`))
  await nextTurn()
  await nextTurn()
  t.strictSame(
    done,
    ['decide', 'send', 'defer'].flatMap((kind) => [1, 2, 3].map((n) => `${kind} ${n}`)),
  )
})
