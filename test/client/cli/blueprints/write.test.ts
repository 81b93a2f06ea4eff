/** Exported files are read back as the same resources. Also covers variables and text diffs. */
import fc from 'fast-check'
import t from 'tap'
import { unifiedDiff } from '../../../../client/cli/blueprints/text-diff.ts'
import { escapeVariables, expand } from '../../../../client/cli/blueprints/variables.ts'
import { filesOf, singleFile } from '../../../../client/cli/blueprints/write.ts'
import type { Export } from '../../../../protocol/blueprints/schema.ts'
import { folderFor, read } from './support.ts'

const SURROGATES = { first: 0xd800, count: 0x800 }
/**
 * Any character except halves of surrogate pairs. Used instead of the unit `binary` of `fc.string`,
 * which takes 1 s to list its characters.
 */
const unit = fc.nat(0x10_ffff - SURROGATES.count).map(
  (n) => String.fromCodePoint(n < SURROGATES.first ? n : n + SURROGATES.count),
  (one) => {
    const point = typeof one === 'string' ? one.codePointAt(0) : undefined
    if (point === undefined || one !== String.fromCodePoint(point)) throw new Error('no character')
    return point < SURROGATES.first ? point : point - SURROGATES.count
  },
)
/**
 * Generates texts that could change when they are written as YAML and read back, when they are
 * stored in a file, or when variables are expanded.
 */
const text = (maxLength: number) =>
  fc.oneof(
    fc.string({ unit, maxLength }),
    fc.string({ unit: 'grapheme', maxLength }),
    fc
      .array(
        fc.constantFrom(
          '${A}',
          '$',
          '{',
          '}',
          '${{',
          '}}',
          '$${',
          '${A:-b}',
          '"',
          "'",
          '\n',
          '\r\n',
          ' ',
          '\t',
          '#',
          ': ',
          '- ',
          '---',
          '\ufeff',
          '\u0085',
          '\u2028',
          '|',
          '>',
          '\\',
          'no',
          '1',
          '~',
          '*',
          '&a',
          '!file',
        ),
        { maxLength: 12 },
      )
      .map((parts) => parts.join('').slice(0, maxLength)),
  )
// Keys and names are not empty and contain no control characters.
const key = text(40)
  .map((one) => one.replace(/[\u0000-\u001f\u007f]/g, ''))
  .filter((one) => one !== '')
const json = fc
  .jsonValue({ maxDepth: 3 })
  .filter((value) => !JSON.stringify(value).includes('__proto__'))
const tags = fc.dictionary(fc.constantFrom('a', 'B c', '404', '<<', 'true', '${A}'), text(30), {
  maxKeys: 3,
})
const agent = fc.record(
  {
    key,
    name: key,
    description: text(200),
    system_prompt: fc.oneof(
      text(300),
      fc.constant('x'.repeat(400)),
      fc.constantFrom('a\nb\n\n', ' \n', '\n \n'),
    ),
    status: fc.constantFrom('active', 'inactive'),
    timeout_seconds: fc.integer({ min: 0, max: 86_400 }),
    tags,
    toolkits: fc.array(fc.record({ key }), { maxLength: 2 }),
  },
  { requiredKeys: ['key', 'name'] },
)
const action = fc.record(
  {
    key,
    name: fc.uuid().map((id) => `a-${id}`),
    type: fc.constant('http'),
    endpoint: fc.constant('https://example.com/${PATH}?a=$${B}'),
    description: text(100),
  },
  { requiredKeys: ['key', 'name', 'type', 'endpoint'] },
)
const loop = fc.record(
  {
    key,
    name: key,
    status: fc.constant('draft'),
    settings: fc.dictionary(fc.constantFrom('a', 'b'), json),
  },
  { requiredKeys: ['key', 'name'] },
)
const unique = <T extends { key: string; name: string }>(one: fc.Arbitrary<T>) =>
  fc
    .uniqueArray(one, { maxLength: 4, selector: ({ key: k }) => k })
    .filter((all) => new Set(all.map(({ name }) => name)).size === all.length)
const identity = fc.record(
  { namespace: key, blueprint_key: key, blueprint_version: key },
  { requiredKeys: ['blueprint_key'] },
)
const exported = fc
  .tuple(
    identity,
    fc.record({ agents: unique(agent), actions: unique(action), loops: unique(loop) }),
  )
  .map(([header, resources]) => ({ ...header, resources }) as unknown as Export)

const sorted = ({ resources, ...header }: { resources: object }) => ({
  ...header,
  resources: Object.fromEntries(
    Object.entries(resources as Record<string, { key: string }[]>)
      .filter(([, list]) => list.length > 0)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, list]) => [name, [...list].sort((a, b) => (a.key < b.key ? -1 : 1))]),
  ),
})
/** Returns a value as the service receives it in JSON: plain objects, and no negative zero. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

for (const format of ['yaml', 'json'] as const)
  t.test(`resources that are written as ${format} are read unchanged`, async (t) => {
    const folder = folderFor(t)
    await fc.assert(
      fc.asyncProperty(exported, async (one) => {
        folder.clear()
        const files = filesOf(one, { format, schemas: 'https://baton.example/schemas' })
        for (const [name, content] of files) folder.write(name, content)
        const { requests, faults } = read(folder, { A: 'wrong' })
        t.strictSame(faults, [])
        t.strictSame(
          requests.map((request) => plain(sorted(request))),
          [plain(sorted(one))],
        )
        t.strictSame(
          [...filesOf(one, { format, schemas: 'https://baton.example/schemas' })],
          [...files],
        )
      }),
      { numRuns: 150 },
    )
  })

t.test('one document has everything', async (t) => {
  const folder = folderFor(t)
  await fc.assert(
    fc.asyncProperty(exported, fc.constantFrom('yaml', 'json'), async (one, format) => {
      folder.write('all.yaml', singleFile(one, { format, schemas: '.schemas' }))
      const { requests } = read(folder)
      t.strictSame(
        requests.map((request) => plain(sorted(request))),
        [plain(sorted(one))],
      )
    }),
    { numRuns: 60 },
  )
})

t.test('the files of an export', async (t) => {
  const files = filesOf(
    {
      blueprint_key: 'desk',
      resources: {
        agents: [
          { key: 'Triage', name: 'Triage', system_prompt: 'You sort.\nBe brief.' },
          { key: 'triage', name: 'triage', system_prompt: 'Short' },
          { key: 'a/../b', name: 'b' },
          { key: 'con', name: 'con' },
        ],
        skills: [{ key: 's', name: 's', description: 'd', instructions: 'one\ntwo\n' }],
      },
    } as unknown as Export,
    { format: 'yaml', schemas: 'http://x/schemas' },
  )
  t.strictSame(
    [...files.keys()].map((name) => name.replace(/-[0-9a-f]{8}\./, '-#.')),
    [
      'blueprint.yaml',
      'skills/s.instructions.md',
      'skills/s.yaml',
      'agents/Triage.system_prompt.md',
      'agents/Triage.yaml',
      'agents/triage-#.yaml',
      'agents/a-b-#.yaml',
      'agents/con-#.yaml',
    ],
  )
  t.equal(files.get('agents/Triage.system_prompt.md'), 'You sort.\nBe brief.\n')
  t.equal(
    files.get('agents/Triage.yaml'),
    '# yaml-language-server: $schema=http://x/schemas/agent.json\nkind: agent\nkey: Triage\n' +
      'name: Triage\nsystem_prompt: !file Triage.system_prompt.md\n',
  )
  t.equal(
    files.get('blueprint.yaml'),
    '# yaml-language-server: $schema=http://x/schemas/blueprint.json\nblueprint_key: desk\n',
  )
})

t.test('an escaped text expands to itself', async (t) => {
  fc.assert(
    fc.property(text(200), (one) => {
      const expanded = expand(escapeVariables(one), { A: 'wrong' }, (name) => {
        throw new Error(`${name} is missing`)
      })
      return expanded === one
    }),
    { numRuns: 3000 },
  )
  t.equal(escapeVariables('${name} ${{ x }}'), '${name} ${{ x }}', 'only where necessary')
})

function patched(from: string, diff: readonly string[]): string {
  const lines = from === '' ? [] : from.split('\n')
  let shift = 0
  for (let at = 0; at < diff.length; ) {
    const [, start = '', count = ''] = /^@@ -(\d+),(\d+) /.exec(diff[at] ?? '') ?? []
    const body: string[] = []
    for (at++; at < diff.length && !diff[at]?.startsWith('@@ '); at++) body.push(diff[at] ?? '')
    const next = body.filter((line) => !line.startsWith('-')).map((line) => line.slice(1))
    const index = Number(count) === 0 ? Number(start) : Number(start) - 1
    lines.splice(index + shift, Number(count), ...next)
    shift += next.length - Number(count)
  }
  return lines.join('\n')
}
t.test('a difference of texts leads from one to the other', async (t) => {
  const lines = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 40 })
  fc.assert(
    fc.property(lines, lines, (from, to) => {
      const [before, after] = [from.join('\n'), to.join('\n')]
      const diff = unifiedDiff(before, after)
      return patched(before, diff) === after && (diff.length === 0) === (before === after)
    }),
    { numRuns: 1000 },
  )
  t.strictSame(unifiedDiff('1\n2\n3\n4\n5\n6', '1\n2\n3\n4\nfive\n6'), [
    '@@ -2,5 +2,5 @@',
    ' 2',
    ' 3',
    ' 4',
    '-5',
    '+five',
    ' 6',
  ])
})
