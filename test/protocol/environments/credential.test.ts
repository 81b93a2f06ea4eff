/** Credentials of environments: their form, and the rejection of other texts. */
import fc from 'fast-check'
import t from 'tap'
import {
  CREDENTIAL_BYTES,
  environmentCredential,
  parseEnvironmentCredential,
} from '../../../protocol/environments/credential.ts'
import { makeId } from '../../../protocol/ids.ts'

const bytes = (n: number) => fc.uint8Array({ minLength: n, maxLength: n })
const id = (prefix: 'environment' | 'project') =>
  fc.tuple(fc.nat(), bytes(9)).map(([at, random]) => makeId(prefix, at, random))
const keyPrefix = fc.stringMatching(/^[a-z][a-z0-9]{0,15}$/)

t.test('a credential names its environment and the tag of its project', async () => {
  fc.assert(
    fc.property(
      keyPrefix,
      id('project'),
      id('environment'),
      bytes(CREDENTIAL_BYTES),
      (prefix, project, environment_id, random) => {
        const text = environmentCredential(prefix, { project, environment_id }, random)
        const parts = parseEnvironmentCredential(prefix, text)
        return parts?.environment_id === environment_id && project.endsWith(parts.tag)
      },
    ),
  )
})

t.test('keys, tokens and damaged credentials are not credentials of environments', async (t) => {
  const environment_id = makeId('environment', 1, new Uint8Array(9))
  const good = environmentCredential(
    'bat',
    { project: makeId('project', 1, new Uint8Array(9)), environment_id },
    new Uint8Array(CREDENTIAL_BYTES),
  )
  t.ok(parseEnvironmentCredential('bat', good))
  for (const text of [
    '',
    'bat',
    `bat_${'0'.repeat(40)}`,
    `batc_${'0'.repeat(40)}ABCDEFGH`,
    good.slice(3),
    good.slice(0, -1),
    good.replace('env_', 'run_'),
    good.replace(/_0/, '_g'),
    good.replace(/_(?=0{40})/, '_0'),
    'batenv_',
    'batenv_constructor',
  ])
    t.equal(parseEnvironmentCredential('bat', text), undefined, text)
  t.equal(parseEnvironmentCredential('acme', good), undefined, 'another key prefix')
})
