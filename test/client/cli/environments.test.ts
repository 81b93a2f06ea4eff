/** The arguments of `baton env cp`, and the lines that `baton env logs -f` adds. */
import fc from 'fast-check'
import t from 'tap'
import { copyEnd } from '../../../client/cli/environments/copy.ts'
import { newTexts, shownTexts } from '../../../client/cli/environments/logs.ts'
import { plainText } from '../../../client/plain.ts'
import { addedTo } from '../../../protocol/environments/added.ts'

t.test('an argument names a file of this machine or of an environment', async (t) => {
  t.strictSame(copyEnd('desk:data/a.csv'), { env: 'desk', path: 'data/a.csv' })
  t.strictSame(copyEnd('env_01JZ3M0Q0R8XG4V2T6Y9ABCDEF:a:b'), {
    env: 'env_01JZ3M0Q0R8XG4V2T6Y9ABCDEF',
    path: 'a:b',
  })
  t.strictSame(copyEnd('desk:'), { env: 'desk', path: '' })
  for (const file of ['a.csv', './desk:a', '/tmp/x:y', '../a', '.', 'a b:c'])
    t.strictSame(copyEnd(file), { file })
})

t.test('a log that is followed shows only what was added', async (t) => {
  t.equal(addedTo('a\nb\n', 'a\nb\nc\n'), 'c\n')
  t.equal(addedTo('a\nb\n', 'a\nb\n'), '')
  t.equal(addedTo('', 'a\n'), 'a\n')
  const ticks = 'tick\n'.repeat(3)
  t.equal(addedTo(ticks, `${ticks}tick\n`), 'tick\n', 'an equal line was added')
  t.equal(addedTo('x\ny\n', 'a\nb\n'), undefined, 'everything was replaced')
  const long = Array.from({ length: 1000 }, (_, line) => `line ${line}\n`).join('')
  t.equal(addedTo(long, `${long.slice(5000)}next\n`), 'next\n', 'the beginning was cut off')
  t.equal(addedTo('1\n2\n3\n', '2\n3\n4\n'), '4\n', 'the beginning of a short log was cut off')
  t.equal(addedTo('a\nb\n\n', '\nb\nb\n'), 'b\nb\n')
  t.equal(addedTo('a11\n', '1\n2\n'), undefined, 'an overlap has whole lines')
  const before = `start\n${'tick\n'.repeat(1000)}`
  t.equal(addedTo(before, `${before.slice(3)}tick\n`), 'tick\n', 'it was cut off within a line')
  t.equal(
    addedTo(before, `${'tick\n'.repeat(1000)}end\n`),
    'end\n',
    'equal lines are neither repeated nor omitted',
  )
})

t.test('the part of a growing text that was added is found in every window', async (t) => {
  const line = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 1 })
  const lines = (minLength: number) => fc.array(line, { minLength, maxLength: 12 })
  fc.assert(
    fc.property(lines(1), lines(0), fc.integer({ min: 1, max: 12 }), (old, added, tail) => {
      const windowOf = (all: readonly string[]) => [...all.slice(-tail), ''].join('\n')
      const [before, after] = [windowOf(old), windowOf([...old, ...added])]
      const found = addedTo(before, after)
      const expected = [...added, ''].join('\n')
      if (added.length >= tail) return true
      return found !== undefined && expected.endsWith(found)
    }),
  )
  t.pass()
})

t.test('a line is not broken, and its incomplete control sequences are not shown', async (t) => {
  const shown = async (...texts: string[]) => {
    const all: string[] = []
    const given = (async function* () {
      yield* texts
    })()
    for await (const text of shownTexts(given)) all.push(text)
    return all
  }
  t.strictSame(await shown('a\nhal', 'f\n', 'b'), ['a\nhal', 'f\n', 'b'])
  t.strictSame(await shown('x\u001b[3', '1mred\n', '\u001b]0;ti', 'tle\u0007y\n'), [
    'x',
    'red\n',
    'y\n',
  ])
})

t.test('frames of a log are shown once, also after a reconnection', async (t) => {
  const frame = (event: string, data: object) => ({
    subscription: 'log',
    event,
    data: { ...data },
  })
  const textsOf = async (...frames: ReturnType<typeof frame>[]) => {
    const texts: string[] = []
    for await (const text of newTexts(
      (async function* () {
        yield* frames
      })(),
    ))
      texts.push(text)
    return texts
  }
  const started = frame('subscription.started', {})
  const whole = (text: string) => frame('log.text', { log_name: 'worker', text, reset: true })
  const added = (text: string) => frame('log.text', { log_name: 'worker', text })
  t.strictSame(
    await textsOf(started, whole('a\nb\n'), added('c\n'), started, whole('a\nb\nc\nd\n')),
    ['a\nb\n', 'c\n', 'd\n'],
  )
  t.strictSame(await textsOf(whole('a\n'), whole('x\n')), ['a\n', 'x\n'], 'the log was replaced')
  const long = 'line\n'.repeat(2000)
  t.strictSame(await textsOf(whole(`0${long}`), whole(`${long}end\n`)), [`0${long}`, 'end\n'])
  t.strictSame(
    await textsOf(whole('1\n2\n'), whole('2\n3\n'), whole('3\n4\n')),
    ['1\n2\n', '3\n', '4\n'],
    'few lines are requested',
  )
  const error = { code: 'not_found', message: 'gone' }
  for (const event of ['subscription.refused', 'subscription.ended'])
    await t.rejects(textsOf(started, frame(event, { error })), { status: 404, code: 'not_found' })
})

t.test('text of programs cannot control the terminal', async (t) => {
  const codes =
    '\u001b]0;title\u0007\u001b]52;c;aGk=\u0007\u001b]8;;javascript:x\u0007link\u001b]8;;\u0007\r'
  t.equal(plainText(`a\tb\nc\u001b[31mred\u001b[0m${codes}\u009b31m\0\u007f`), 'a\tb\ncredlink')
  t.notMatch(plainText('\u001b]0;cut off'), /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/)
})
