/** The arguments of `baton env cp`, and the lines that `baton env logs -f` adds. */
import t from 'tap'
import { copyEnd } from '../../../client/cli/environments/copy.ts'
import { newTexts } from '../../../client/cli/environments/logs.ts'
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
  t.equal(addedTo(ticks, `${ticks}tick\n`, true), 'tick\n', 'an equal line was added')
  t.equal(addedTo('x\ny\n', 'a\nb\n'), undefined, 'everything was replaced')
  const long = Array.from({ length: 1000 }, (_, line) => `line ${line}\n`).join('')
  t.equal(addedTo(long, `${long.slice(5000)}next\n`), 'next\n', 'the beginning was cut off')
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
