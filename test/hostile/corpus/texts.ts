/**
 * Hostile texts for the parsers of the service. `corpus` contains them as JSON texts.
 * JSON.stringify cannot produce some of them, such as objects with duplicate keys, and numbers that
 * are out of range.
 */

import { fileTexts, markdowns, skills } from './documents.ts'

/** The kind of a supplied text. It determines how the service parses the text. */
export type TextKind =
  | 'expression'
  | 'template'
  | 'schema'
  | 'skill'
  | 'markdown'
  | 'url'
  | 'file'
  | 'schedule'
  | 'duration'
  | 'time'
  | 'selector'
  | 'search'
  | 'json'
  | 'word'

/** Hostile regular expressions: invalid, very large, or exponential in backtracking engines. */
export const patterns: readonly string[] = [
  '(a+)+$',
  '^(a|a)*$',
  '^(([a-z])+.)+[A-Z]([a-z])+$',
  '(.*a){25}',
  '((((((((((a*)*)*)*)*)*)*)*)*)*)*$',
  '(a{1,1000}){1,1000}',
  'a{1,1000}{1,1000}{1,1000}',
  'a{99999999999}',
  '(?=a)b',
  '(?<=a)b',
  '(a)\\1',
  '\\p{L}{1000}',
  '\\p{Nothing}',
  '[\\u{110000}]',
  '[z-a]',
  '[[:alpha:]]',
  '(?<n>a)(?<n>b)',
  '(?i)(?i)(?i)a',
  '('.repeat(10_000),
  `${'('.repeat(2000)}a${')'.repeat(2000)}`,
  '|'.repeat(10_000),
  '.*'.repeat(5000),
  '[',
  '\\',
  '(?',
  '*',
  '\ud800',
  '\u0000',
]

/**
 * An expression that compares two documents repeatedly. Its length is allowed, but its evaluation
 * exceeds the work limit.
 */
export const REPEATED_COMPARISON = `true${' && input == event'.repeat(100)}`
/** Expressions that nest deeply, require a lot of work, or use forbidden names. */
export const expressions: readonly string[] = [
  '('.repeat(2000),
  `${'('.repeat(2000)}1${')'.repeat(2000)}`,
  `${'['.repeat(1000)}${']'.repeat(1000)}`,
  '!'.repeat(4000),
  `-${'-'.repeat(4000)}1`,
  `1${'+1'.repeat(2000)}`,
  `true${' && true'.repeat(500)}`,
  `${'true ? '.repeat(500)}1${' : 0'.repeat(500)}`,
  `input${'.a'.repeat(2000)}`,
  `input${'[0]'.repeat(1300)}`,
  REPEATED_COMPARISON,
  '[1, 2, 3].map(a, [1, 2, 3].map(b, a * b))',
  `["${'a'.repeat(40)}!"].exists(x, x.matches("(a+)+$"))`,
  ...patterns.map((pattern) => `"${'a'.repeat(60)}!".matches(${JSON.stringify(pattern)})`),
  '"x" + "x" + 1 / 0',
  '1 / 0',
  '1 % 0',
  '1e400',
  '9223372036854775808',
  '0xffffffffffffffffffff',
  'input.__proto__.constructor("return process")()',
  'input.constructor.constructor',
  '"".constructor',
  '__proto__',
  'constructor',
  'size(size(size(input)))',
  'input.exists(input, input.exists(input, true))',
  'has(input)',
  'steps["__proto__"].output',
  'steps["a\\u0000b"].output',
  'b"\\xff"',
  '"\\u{d800}"',
  '"""',
  "r'",
  '// a comment',
  '\u0000',
  '\ud800',
  '\u202e input',
  '',
  ' '.repeat(4000),
  '"'.repeat(4001),
]

/** Templates with unclosed, nested or many expressions, or with growing results. */
const templates: readonly string[] = [
  '${{',
  '${{ }}',
  '${{ ${{ 1 }} }}',
  '}}${{',
  '${{'.repeat(3000),
  '${{ 1 }}'.repeat(1000),
  '${{ "}}" }}',
  "${{ '}}",
  `\${{ ${'('.repeat(1000)} }}`,
  '${{ input }}${{ input }}',
  '${{ run }}',
  '${{ steps.nothing.output }}',
  '${{ input.__proto__ }}',
  '$${{ 1 }}',
  '\\${{ 1 }}',
  '${{ "\\u0000" }}',
  '${{ [1,2,3].map(x, [1,2,3].map(y, "aaaaaaaaaaaaaaaa")) }}',
  ...expressions.slice(0, 14).map((text) => `\${{ ${text} }}`),
]

/**
 * JSON Schemas: circular, external and unresolvable references, keywords with invalid values, very
 * deep and very wide schemas, and hostile patterns.
 */
export const schemas: readonly string[] = [
  '{"$ref":"#"}',
  '{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}',
  '{"allOf":[{"$ref":"#"},{"$ref":"#"}]}',
  '{"properties":{"any":{"$ref":"#"}},"anyOf":[{"$ref":"#"},{"$ref":"#"}]}',
  '{"$ref":"file:///etc/passwd"}',
  '{"$ref":"https://example.invalid/schema.json"}',
  '{"$ref":"#/%zz"}',
  '{"$ref":"#/__proto__"}',
  '{"$ref":"#/constructor/prototype"}',
  '{"$dynamicRef":"#a","$dynamicAnchor":"a"}',
  '{"type":"nothing"}',
  '{"type":["string","string"]}',
  '{"type":[]}',
  '{"required":"a"}',
  '{"enum":[]}',
  '{"multipleOf":0}',
  '{"multipleOf":1e-400}',
  '{"minLength":1e400}',
  '{"minLength":-1,"maxLength":0.5}',
  '{"properties":{"__proto__":{"type":"string"}},"required":["__proto__","constructor"]}',
  '{"format":"nothing"}',
  '{"format":"regex","pattern":"["}',
  '{"uniqueItems":true,"items":{"uniqueItems":true}}',
  '{"dependentRequired":{"a":["b"]},"unevaluatedProperties":false}',
  `${'{"not":'.repeat(500)}{}${'}'.repeat(500)}`,
  `${'{"not":'.repeat(20_000)}{}${'}'.repeat(20_000)}`,
  `{"oneOf":[${Array.from({ length: 2000 }, () => '{"type":"string"}').join()}]}`,
  `{"enum":[${Array.from({ length: 5000 }, (_, n) => n).join()}]}`,
  `{"properties":{${Array.from({ length: 2000 }, (_, n) => `"p${n}":true`).join()}}}`,
  ...patterns
    .slice(0, 14)
    .map((pattern) => `{"type":"string","pattern":${JSON.stringify(pattern)}}`),
  ...patterns
    .slice(0, 4)
    .map((pattern) => `{"patternProperties":{${JSON.stringify(pattern)}:true}}`),
]

const urls: readonly string[] = [
  'javascript:alert(1)',
  'data:text/html,x',
  'file:///etc/passwd',
  'http://127.0.0.1/',
  'http://[::1]/',
  'http://[::ffff:127.0.0.1]/',
  'http://0x7f.1/',
  'http://2130706433/',
  'http://169.254.169.254/latest/meta-data/',
  'http://localhost./',
  'https://user:word@example.invalid/',
  'https://example.invalid:99999/',
  'https://example.invalid:0/',
  'https://[',
  'https://%zz/',
  'https://\u0000/',
  'https://example.invalid/\r\nX-Injected: 1',
  'https://xn--/',
  'https://example.invalid\\@127.0.0.1/',
  '//example.invalid/',
  'https:example.invalid',
  'https://',
  `https://${'a'.repeat(300)}.invalid/`,
  `https://example.invalid/${'a'.repeat(20_000)}`,
  `https://${'a.'.repeat(2000)}invalid/`,
  'gopher://example.invalid/',
  'https://\ud800/',
  'https://ｅxample.invalid/',
]

export const schedules: readonly string[] = [
  '* * * * *',
  '* * * * * *',
  '0 0 31 2 *',
  '0 0 29 2 1',
  '0 0 L * *',
  '0 0 * * 1#5',
  '*/0 * * * *',
  '*/99999999999 * * * *',
  '99999999999 * * * *',
  '1-99999999 * * * *',
  '5-1 * * * *',
  `${'1,'.repeat(5000)}1 * * * *`,
  '@yearly',
  '@reboot',
  '@every 1s',
  '-1s',
  '10s',
  '9'.repeat(400),
  `${'9'.repeat(400)}h`,
  '1ns',
  '2562047h47m16s',
  'Europe/Berlin',
  '../../etc/localtime',
  'Etc/GMT+99',
  '+25:00',
  'UTC\u0000',
  '',
  '\ud800 * * * *',
]
const durations: readonly string[] = [
  '0',
  '-1s',
  '1e9h',
  '.s',
  '1.s',
  '0.0000000000000000001ns',
  `${'9'.repeat(400)}h`,
  `${'1h'.repeat(5000)}`,
  `${'1'.repeat(5000)}`,
  '1h1h1h',
  '∞',
  '1µs',
  '1d',
  'P1D',
]
const times: readonly string[] = [
  '2030-02-30T00:00:00Z',
  '0000-00-00T00:00:00Z',
  '9999-12-31T23:59:60Z',
  '275760-09-13T00:00:00.001Z',
  '-000001-01-01T00:00:00Z',
  '2030-01-01T00:00:00+99:99',
  `2030-01-01T00:00:00.${'9'.repeat(5000)}Z`,
  '2030-01-01',
  'now',
  '0',
  '1893456000000',
]
const selectors: readonly string[] = [
  '*',
  '**',
  '*.*',
  'a.*.b',
  '.*',
  '>',
  'a.>',
  'run.*',
  '*.created',
  'a'.repeat(5000),
  'a.'.repeat(3000),
  '(a+)+$',
  'a b',
  '__proto__.*',
  'service.project.admin',
  '$JS.API.>',
  'role:',
  '\u0000',
]
const searches: readonly string[] = [
  '"',
  "'",
  '*',
  'a*',
  '^a',
  'NEAR(a b, 999999999)',
  'a AND',
  'a OR OR b',
  '(',
  '-a',
  'content:x',
  '{a b}:x',
  "'; DROP TABLE runs; --",
  '%'.repeat(1000),
  '_'.repeat(1000),
  `${'a '.repeat(5000)}`,
  `${'"a" OR '.repeat(500)}"a"`,
  '\u0000',
  '\ud800',
  '\u{1f600}',
  'e30',
  'WzEsMl0',
  Buffer.from('[9007199254740993,"x"]').toString('base64url'),
  Buffer.from('['.repeat(5000)).toString('base64url'),
  Buffer.from('{"__proto__":1}').toString('base64url'),
]

/** Plain JSON texts: nesting, size, numbers, repeated keys, lone surrogates. */
const jsons: readonly string[] = [
  `${'['.repeat(64)}${']'.repeat(64)}`,
  `${'['.repeat(1000)}${']'.repeat(1000)}`,
  `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
  `${'{"a":'.repeat(1000)}1${'}'.repeat(1000)}`,
  `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`,
  '1e400',
  '-1e400',
  '9007199254740993',
  `${'9'.repeat(10_000)}`,
  `0.${'0'.repeat(10_000)}1`,
  '-0',
  '{"a":1,"a":2}',
  '{"__proto__":{"admin":true},"__proto__":null}',
  '{"constructor":{"prototype":{"admin":true}}}',
  '{"toString":1,"valueOf":2,"hasOwnProperty":3,"then":4,"toJSON":5,"length":-1}',
  '"\\ud800"',
  '"\\udfff\\ud800"',
  '{"\\ud800":1}',
  '"\\u0000"',
  '{"":"","\\u0000":""}',
  '{"1":1,"0":0,"-1":2}',
  `[${'0,'.repeat(50_000)}0]`,
  `{${Array.from({ length: 10_000 }, (_, n) => `"k${n}":${n}`).join()}}`,
  JSON.stringify('é'.repeat(100_000)),
  'null',
  'true',
  '[]',
  '{}',
]
const words: readonly string[] = [
  '',
  ' ',
  'x'.repeat(5000),
  '__proto__',
  'constructor',
  '../../etc/passwd',
  '%00%2e%2e%2f',
  "' OR 1=1; --",
  'a\r\nX-Injected: 1',
  '\u0000',
  '\ud800',
  '\u202e\ufeff',
  'run_01ARZ3NDEKTSV4RRFFQ69G5FAV',
  '*',
  '>',
  'a.b.c',
  '${{ run.id }}',
  '<img src=x onerror=alert(1)>',
  'x@y\r\nBcc: z@example.org',
]

const quoted = (texts: readonly string[]): string[] => texts.map((text) => JSON.stringify(text))
export const corpus: Readonly<Record<TextKind, readonly string[]>> = {
  expression: [...quoted(expressions), ...jsons.slice(0, 6)],
  template: [...quoted(templates), ...jsons.slice(0, 6)],
  schema: [...schemas, ...jsons],
  skill: [...quoted(skills), ...quoted(markdowns)],
  markdown: quoted(markdowns),
  url: quoted(urls),
  file: quoted(fileTexts),
  schedule: quoted(schedules),
  duration: quoted(durations),
  time: quoted(times),
  selector: quoted(selectors),
  search: quoted(searches),
  json: [...jsons, ...schemas.slice(0, 10)],
  word: [...quoted(words), '0', 'null', '[]', '{}'],
}
