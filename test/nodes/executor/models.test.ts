/**
 * The setting that lists models: how it is parsed, which faults are reported, and that no message
 * contains a key.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { keyFaults } from '../../../nodes/executor/models/provider.ts'
import { readModels } from '../../../nodes/models.ts'

const read = (value: unknown) =>
  readModels(typeof value === 'string' ? value : JSON.stringify(value), 'Service')
const acme = {
  provider: 'acme',
  kind: 'openai-compatible',
  base_url: 'https://llm.example.org/v1/',
  key: 'env:ACME_KEY',
  models: [
    { id: 'large', context_window_tokens: 128_000, max_effort: 'high' },
    { id: 'small', context_window_tokens: 8000, recommended: true },
  ],
}
const wrong = (value: unknown): string => {
  const answer = read(value)
  return 'wrong' in answer ? answer.wrong : 'fine'
}

t.test('without the setting, the built-in model is named after the brand', async (t) => {
  t.match(read(''), {
    models: {
      default_model: 'service/scripted',
      providers: [{ provider: 'service', models: [{ id: 'scripted', provider: 'service' }] }],
    },
    access: [{ provider: 'service', kind: 'scripted' }],
  })
  t.match(readModels('', 'Acme'), { models: { default_model: 'acme/scripted' } })
})
t.test('providers, the default and the ceiling', async (t) => {
  const answer = read({
    providers: [acme],
    ceiling: { timeout_seconds: 300, effort: 'medium', models: ['acme/small'] },
  })
  t.match(answer, {
    models: {
      default_model: 'acme/small',
      ceiling: { timeout_seconds: 300 },
      providers: [
        {
          provider: 'acme',
          display_name: 'acme',
          source: 'platform',
          models: [{ id: 'large', label: 'large', provider: 'acme', max_effort: 'high' }, {}],
        },
        { provider: 'service' },
      ],
    },
    access: [{ base_url: 'https://llm.example.org/v1', key: 'env:ACME_KEY' }, {}],
  })
  t.notMatch(
    JSON.stringify('models' in answer && answer.models),
    'ACME_KEY',
    'the source of the key is only in the access data',
  )
  t.match(read({ default: 'large', providers: [acme] }), {
    models: { default_model: 'acme/large' },
  })
  const folder = mkdtempSync(join(tmpdir(), 'baton-models-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'models.json'), JSON.stringify({ providers: [acme] }))
  t.match(read(join(folder, 'models.json')), { models: { default_model: 'acme/small' } })
})
t.test('faults are reported', async (t) => {
  t.match(wrong('{'), /must be JSON/)
  t.match(wrong('/nowhere/at/all.json'), /must be JSON/)
  t.match(wrong({ providers: [{ ...acme, key: 'sk-secret' }] }), /\/providers\/0\/key/)
  t.notMatch(
    wrong({ providers: [{ ...acme, key: 'sk-secret' }] }),
    'sk-secret',
    'a key that stands there by mistake is not repeated',
  )
  t.match(wrong({ providers: [acme, acme] }), /acme twice/)
  t.match(wrong({ providers: [{ ...acme, provider: 'service' }] }), /service twice/)
  t.match(
    wrong({ providers: [{ provider: 'x', kind: 'openai-compatible', models: acme.models }] }),
    /base_url/,
  )
  t.match(wrong({ default: 'none', providers: [acme] }), /default none/)
  t.match(wrong({ providers: [acme], ceiling: { models: ['large'] } }), /allows the model large/)
  t.match(wrong({ providers: [], more: 1 }), /is invalid at/)
})
t.test('a fault of a member says what the member must be', async (t) => {
  const [model] = acme.models
  for (const [value, sentence] of [
    [{ providers: [{ ...acme, key: 'sk-secret' }] }, /key: must be env:<variable> or file:/],
    [
      { providers: [{ ...acme, kind: 'opnai' }] },
      /kind: must be one of openai-compatible, openai,/,
    ],
    [{ providers: [{ ...acme, base_url: 'acme:80' }] }, /base_url: must be a URL such as/],
    [{ providers: [{ ...acme, base_url: 'http://acme:x' }] }, /base_url that cannot be parsed/],
    [{ providers: [acme], defaults: 'x' }, /^is invalid at \/: has the unknown member defaults$/],
    [
      { providers: [{ ...acme, models: [{ id: model?.id, context_window: 9 }] }] },
      /must have required .* context_window_tokens, and has the unknown member context_window$/,
    ],
    [[], /^is invalid at \/: must be object/],
  ] as const)
    t.match(wrong(value), sentence)
})
t.test('providers without a key are found, with the place of the key', async (t) => {
  const folder = t.testdir({ empty: '\n', filled: 'secret\n' })
  const answer = read({
    providers: [
      acme,
      { ...acme, provider: 'set', key: 'env:SET_KEY' },
      { ...acme, provider: 'open', key: undefined },
      { ...acme, provider: 'claude', kind: 'anthropic', key: undefined },
      { ...acme, provider: 'empty', key: `file:${folder}/empty` },
      { ...acme, provider: 'filled', key: `file:${folder}/filled` },
    ],
  })
  if ('wrong' in answer) throw new Error(answer.wrong)
  t.strictSame(await keyFaults(answer.access, { SET_KEY: 'secret', ACME_KEY: ' ' }), [
    { provider: 'acme', reason: 'The environment variable ACME_KEY is empty or not set.' },
    { provider: 'claude', reason: 'Its setting has no key.' },
    { provider: 'empty', reason: `The file ${folder}/empty is empty or cannot be read.` },
  ])
})
t.test('the examples in the documentation are accepted', async (t) => {
  const text = readFileSync('docs/models.md', 'utf8')
  const examples = [...text.matchAll(/^```json\n([\s\S]*?)^```/gm)].map(([, json = '']) => json)
  t.equal(examples.length, 2)
  for (const example of examples) t.equal(wrong(JSON.parse(example)), 'fine')
})
