/** The command blocks of a document, their marks, and the commands in its text. */
import t from 'tap'
import { blocksOf } from './blocks.ts'
import { faultOf, inlineCode } from './inline.ts'

const fenced = (language: string, ...lines: readonly string[]): string =>
  [`\`\`\`${language}`, ...lines, '```'].join('\n')

t.test('command blocks are found with their marks and lines', async (t) => {
  const text = [
    'Text.',
    fenced('sh', 'one', 'two'),
    fenced('json', '{"a": 1}'),
    '<!-- not run: needs three hosts -->',
    fenced('sh', 'three'),
    '<!-- runs until stopped -->',
    fenced('sh', 'four'),
    fenced('', '```sh is text here'),
  ].join('\n')
  t.strictSame(blocksOf(text), [
    { line: 3, text: 'one\ntwo', mark: 'run' },
    { line: 11, text: 'three', mark: 'skip', reason: 'needs three hosts' },
    { line: 15, text: 'four', mark: 'background' },
  ])
})

t.test('a mark without a block, or without a reason, is an error', async (t) => {
  const block = fenced('sh', 'one')
  for (const [text, message] of [
    [`<!-- not run: -->\n${block}`, 'line 1: <!-- not run: -->'],
    [`<!-- not run -->\n${block}`, 'line 1: <!-- not run -->'],
    [`<!-- not run: why -->\n\n${block}`, /line 1: the mark is not above/],
    [`<!-- not run: why -->\n${fenced('ts', 'one')}`, /line 1: the mark is not above/],
    [`<!-- runs until noon -->\n${block}`, 'line 1: <!-- runs until noon -->'],
  ] as const)
    t.throws(() => blocksOf(text), { message })
})

t.test('commands in the text are checked by name and flags', async (t) => {
  const text = ['Ask `run list --statu x`,', '```sh', '`no`', '```', 'not `x` `y`.'].join('\n')
  t.strictSame(inlineCode(text), [
    { line: 1, code: 'run list --statu x' },
    { line: 5, code: 'x' },
    { line: 5, code: 'y' },
  ])
  for (const [code, fault] of [
    ['baton run list --status failed', undefined],
    ['run list --statu failed', /list has no --statu/],
    ['npm run baton -- run lists', /lists is none of .*list/],
    ['action rotate', /rotate is none of .*rotate-secret/],
    ['baton worker --action print', /worker has no --action/],
    ['run started', /none of/],
    ['baton <resource> <operation>', undefined],
    ['baton run --help', undefined],
    ['wc -l', undefined],
    ['interaction respond iact_… --value=true', undefined],
  ] as const)
    if (fault) t.match(faultOf(code), fault, code)
    else t.equal(faultOf(code), undefined, code)
})
