/** The arguments of `baton env cp`, and the lines that `baton env logs -f` adds. */
import t from 'tap'
import { copyEnd } from '../../../client/cli/environments/copy.ts'
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
  t.equal(addedTo('x\ny\n', 'a\nb\n'), undefined, 'everything was replaced')
  const long = Array.from({ length: 1000 }, (_, line) => `line ${line}\n`).join('')
  t.equal(addedTo(long, `${long.slice(5000)}next\n`), 'next\n', 'the beginning was cut off')
})
