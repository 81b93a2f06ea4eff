/**
 * A request ends when it is silent for too long, or when the caller's signal aborts. The same
 * conditions end the wait for any other promise.
 */
import t from 'tap'
import { endedBySignal, linkedAbort, orAborted, watchdog } from '../../client/watchdog.ts'

const never = new Promise<never>(() => {})

t.test('a linked signal aborts with its source and its reason, until it is released', async (t) => {
  const [first, second] = [new AbortController(), new AbortController()]
  const linked = linkedAbort(first.signal, undefined, second.signal)
  const released = linkedAbort(second.signal)
  released.release()
  second.abort('the second')
  t.equal(linked.signal.reason, 'the second')
  t.notOk(released.signal.aborted)
  t.ok(linkedAbort(second.signal).signal.aborted, 'a source that had aborted before')
})

t.test('a request ends after silence or when the caller aborts it, and not before', async (t) => {
  const silent = watchdog(20)
  await t.rejects(orAborted(never, silent.signal))
  t.ok(silent.silent())
  await t.rejects(orAborted(never, silent.signal), 'nothing is waited for afterwards')

  const caller = new AbortController()
  const stopped = watchdog(60_000, caller.signal)
  const waiting = orAborted(never, stopped.signal)
  caller.abort(new Error('not wanted any more'))
  await t.rejects(waiting, { message: 'not wanted any more' })
  t.notOk(stopped.silent())
  stopped.stop()

  const watch = watchdog(60_000)
  t.equal(await orAborted(Promise.resolve(1), watch.signal), 1)
  await t.rejects(orAborted(Promise.reject(new Error('broken')), watch.signal), {
    message: 'broken',
  })
  watch.stop()
  t.ok(watch.signal.aborted)
})

t.test(
  'a request and the body of its answer end with the signal, even if fetch ignores it',
  async (t) => {
    const cancelled: string[] = []
    const bodyOf = (name: string) =>
      new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(Buffer.from('one')),
        cancel: () => void cancelled.push(name),
      })
    const caller = new AbortController()
    const deaf = endedBySignal(async () => new Response(bodyOf('a body'), { status: 201 }))
    const answer = await deaf('http://127.0.0.1/', { signal: caller.signal })
    t.equal(answer.status, 201)
    const reader = answer.body?.getReader()
    t.same(Buffer.from((await reader?.read())?.value ?? []).toString(), 'one')
    const next: Promise<unknown> = reader?.read() ?? Promise.resolve()
    caller.abort(new Error('enough'))
    await t.rejects(next, { message: 'enough' })

    let answerLate = (_: Response) => {}
    const slow = endedBySignal(() => new Promise((resolve) => (answerLate = resolve)))
    await t.rejects(slow('http://127.0.0.1/', { signal: AbortSignal.abort(new Error('over')) }), {
      message: 'over',
    })
    answerLate(new Response(bodyOf('a late answer')))
    await new Promise((soon) => setImmediate(soon))
    t.same(cancelled, ['a body', 'a late answer'])

    const whole = endedBySignal(async () => new Response('whole'))
    t.equal(
      await (await whole('http://127.0.0.1/', { signal: new AbortController().signal })).text(),
      'whole',
    )
    t.equal(await (await whole('http://127.0.0.1/')).text(), 'whole')
  },
)
