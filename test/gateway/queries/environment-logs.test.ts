/** Logs of environments: credentials are removed, and the newest bytes are kept. */
import fc from 'fast-check'
import t from 'tap'
import type { LocalContext } from '../../../gateway/listing.ts'
import { environmentLogQueries } from '../../../gateway/queries/environment-logs.ts'
import { redactionOf } from '../../../gateway/queries/redact.ts'
import type { LogsAnswer, LogsRequest } from '../../../protocol/environments/logs.ts'
import type { WorkerLogs } from '../../../protocol/environments/schema.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'

const hex = '0123456789abcdef0123456789abcdef01234567'
const credentials = [
  `bat_${hex}`,
  `bat_${hex}0AB12CD3`,
  `batc_${hex}0AB12CD3`,
  `batenv_env_01KAAAAAAAAAAAAAAAAAAAAAAA_${hex}`,
  ...['ghp', 'gho', 'ghu', 'ghs', 'ghr'].map((prefix) => `${prefix}_${'aB3'.repeat(12)}`),
  `github_pat_${'aB3_'.repeat(20)}`,
  'glpat-abcDEF123-_xyzXYZ789',
  'glpat-abcDEF123.01.abcdefghi',
]
const redact = redactionOf('bat')

t.test('every form of a credential is removed, wherever it is', async (t) => {
  for (const credential of credentials)
    for (const [before, after] of [
      ['', ''],
      ['Authorization: Bearer ', '\n'],
      ['{"token":"', '"}'],
      ['key=', '&b=1'],
      ['https://x-access-token:', '@github.com/a/b.git'],
    ] as const)
      t.notMatch(redact(`${before}${credential}${after}`), credential.slice(4), credential)
})

t.test('other text is unchanged', async (t) => {
  for (const text of [
    'batch_size=100 combat_training_long_enough_word',
    'bat_short',
    'https://example.org:8080/a@b',
    'ratio 1:2 mail a@b.org',
    'glob-pattern-of-many-words',
    'the file highp_precision_shader_source.glsl',
  ])
    t.equal(redact(text), text)
})

t.test('passwords in URLs are removed', async (t) => {
  t.equal(
    redact('clone https://me:p4ss@git.example.org/a'),
    'clone https://[redacted]@git.example.org/a',
  )
})

t.test('a long text is redacted in little time', async (t) => {
  for (const word of ['bat_', 'ghp_a', '://', '://a:', 'glpat-'])
    t.ok(timeOf(() => redact(word.repeat(130_000 / word.length))) < 1000, word)
})
const timeOf = (run: () => void): number => {
  const began = performance.now()
  run()
  return performance.now() - began
}

const ID = `env_${'0'.repeat(26)}`
const environment = { id: ID, place: 'memory/one' }
/** Executes the query with this answer from the host and this record of the environment. */
async function query(
  answer: LogsAnswer | undefined,
  input: object = {},
  record: object | null | Refusal = environment,
) {
  const asked: (LogsRequest & { readonly place: string })[] = []
  const world = {
    now: () => Date.UTC(2026, 0, 1),
    settings: { key_prefix: 'bat' },
    ask: async (to: object) => {
      t.strictSame(to, { project: 'prj_1', kind: 'environment', id: ID })
      return record
    },
    environmentLogs: async (place: string, request: LogsRequest) => {
      asked.push({ place, ...request })
      return answer
    },
  }
  const found = await environmentLogQueries['environment.worker_logs']({
    world,
    project: 'prj_1',
    input: { environment_id: ID, ...input },
  } as unknown as LocalContext)
  return { found, asked }
}
const read = async (answer: LogsAnswer, input = {}): Promise<WorkerLogs> =>
  (await query(answer, input)).found as WorkerLogs

t.test('a host of the place is asked, with defaults', async (t) => {
  const { found, asked } = await query({ content: `ready ${credentials[0]}\n`, truncated: false })
  t.strictSame(found, {
    environment_id: ID,
    log_name: 'worker',
    content: 'ready [redacted]\n',
    truncated: false,
    fetched_at: '2026-01-01T00:00:00.000Z',
  })
  t.match(asked, [{ place: 'memory/one', environment_id: ID, log_name: 'worker', tail: 200 }])
  t.ok((asked[0]?.max_bytes ?? 0) > 64_000)
})

t.test('without an environment, a place or an answer, the request is refused', async (t) => {
  const refusal = async (record?: object | null) => (await query(undefined, {}, record)).found
  t.match(await refusal(null), { refused: 'not_found' })
  t.match(await refusal({ id: ID }), { refused: 'environment_worker_unavailable' })
  t.match(await refusal(), { refused: 'environment_worker_unavailable' })
  t.match(await refusal(refuse('service_unavailable')), { refused: 'service_unavailable' })
})

t.test('the newest bytes are kept, in whole characters', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: 'grapheme', maxLength: 200 }),
      fc.integer({ min: 1, max: 120 }),
      async (text, max_bytes) => {
        // The conversion to UTF-8 replaces lone surrogates.
        const content = Buffer.from(redact(text)).toString()
        const found = await read({ content, truncated: false }, { max_bytes })
        const bytes = Buffer.byteLength(found.content)
        if (bytes > max_bytes) return false
        if (!content.endsWith(found.content)) return false
        if (found.truncated !== found.content.length < content.length) return false
        return !found.truncated || bytes > max_bytes - 4
      },
    ),
  )
})

t.test('no part of a credential remains where the host cut the text', async (t) => {
  for (const credential of credentials)
    for (let cut = 1; cut < credential.length - 8; cut += 5) {
      const content = `${credential.slice(cut)} and more\nlines`
      const found = await read({ content, truncated: true })
      t.equal(found.content, ' and more\nlines')
      t.ok(found.truncated)
    }
})
