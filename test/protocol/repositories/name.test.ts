/** Full names of repositories, which become parts of URLs and of git arguments. */
import fc from 'fast-check'
import t from 'tap'
import { isRepositoryName, REPOSITORY_NAME } from '../../../protocol/repositories/name.ts'

t.test('names that hosts have', async (t) => {
  for (const name of ['acme/app', 'acme/.github', 'a/b', 'group/sub/sub-2/app.js', 'A_1/b.c-d_e'])
    t.ok(isRepositoryName(name), name)
})

t.test('other texts', async (t) => {
  for (const name of [
    '',
    'app',
    '/app',
    'acme/',
    'acme//app',
    'acme/app/',
    '../app',
    'acme/..',
    'acme/../other',
    'acme/.',
    'acme/...',
    '-acme/app',
    'acme/--upload-pack=x',
    'acme/app.git',
    'acme/app.GIT',
    'acme.git/app',
    'acme/app?x',
    'acme/app#x',
    'acme/a%2fb',
    'acme\\app',
    'acme/app\n',
    'acme/a pp',
    'acme:token@host/app',
    'https://host/acme/app',
    'acme/äpp',
    `acme/${'a'.repeat(101)}`,
    `${'a/'.repeat(20)}a`,
    `${'a'.repeat(99)}/`.repeat(3).slice(0, -1),
  ])
    t.notOk(isRepositoryName(name), JSON.stringify(name))
})

const segment = fc.stringMatching(/^\.?[A-Za-z0-9_][A-Za-z0-9._-]{0,20}$/)
const almost = fc.array(
  fc.constantFrom('a', '.', '..', '-', '/', '%', '\\', '\0', '\n', '@', ':'),
  {
    maxLength: 12,
  },
)

t.test('an accepted name is unchanged in a URL and stays below it', async () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.array(segment, { minLength: 1, maxLength: 4 }).map((all) => all.join('/')),
        almost.map((all) => all.join('')),
        fc.string({ maxLength: 30 }),
      ),
      (name) => {
        if (!isRepositoryName(name)) return
        const url = new URL(`https://host/base/${name}.git`)
        if (url.pathname !== `/base/${name}.git`) throw new Error(`${url.pathname}`)
        if (
          name.split('/').some((part) => part.startsWith('-') || encodeURIComponent(part) !== part)
        )
          throw new Error(name)
        if (!new RegExp(REPOSITORY_NAME).test(name)) throw new Error('the schema refuses it')
      },
    ),
    { numRuns: 5000 },
  )
})
