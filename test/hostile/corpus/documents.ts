/**
 * Hostile documents and files: YAML, skills, Markdown, files of known types, and forms that contain
 * files.
 */

/**
 * YAML documents: exponentially expanding aliases, nesting, tags, merges, and invalid documents.
 */
export const yamls: readonly string[] = [
  `a: &a [${'x,'.repeat(9)}x]\n` +
    Array.from(
      { length: 9 },
      (_, n) =>
        `b${n}: &b${n} [${`*${n === 0 ? 'a' : `b${n - 1}`},`.repeat(9)}*${n === 0 ? 'a' : `b${n - 1}`}]`,
    ).join('\n'),
  'a: &a [*a]',
  '&a a: *a',
  'name: &a [*a]',
  'name: x\ntags: &a {a: *a}',
  'name: x\nallowed_tools: &a [*a]',
  'name: x\ndescription: &a {b: {c: [*a]}}',
  '[',
  '['.repeat(5000),
  `${'['.repeat(5000)}${']'.repeat(5000)}`,
  `${'- '.repeat(5000)}x`,
  Array.from({ length: 500 }, (_, n) => `${' '.repeat(n)}a:`).join('\n'),
  '{'.repeat(5000),
  '? '.repeat(5000),
  '!!js/function "function(){}"',
  '!!binary |\n  ////',
  '!<tag:yaml.org,2002:js/undefined> x',
  '<<: {name: x}',
  'name: a\nname: b',
  '__proto__: {admin: true}',
  'constructor: x\ntoString: y',
  'name: 1e400\ndescription: 0o777\ntags: {a: .nan}',
  'name: 2001-12-14t21:59:43.10-05:00',
  'name: |+9\n  x',
  'name: "\\ud800"',
  'name: "\\x00"',
  '%YAML 9.9\n---\nname: x',
  '--- a\n--- b\n--- c',
  '\tname: x',
  'name: \u0007',
  `name: ${'x'.repeat(70_000)}`,
  `${'# comment\n'.repeat(5000)}name: x`,
  'name: *nothing',
  '',
]
export const skills: readonly string[] = [
  ...yamls.map((yaml) => `---\n${yaml}\n---\ndo`),
  '---',
  '---\n---',
  '---\nname: x',
  '---\r\nname: x\r\n---\r\n',
  '\ufeff---\nname: x\n---\ndo',
  `${'---\n'.repeat(10_000)}`,
]

/** Markdown and HTML that a page could execute, or that a renderer could process very slowly. */
export const markdowns: readonly string[] = [
  '<img src=x onerror="globalThis.pwned=1">',
  '<script>globalThis.pwned=1</script>',
  '<svg><script>globalThis.pwned=1</script></svg>',
  '<svg onload=globalThis.pwned=1>',
  '<math><mtext></p><style><img src=x onerror=globalThis.pwned=1></style></mtext></math>',
  '<style>body{display:none}</style>',
  '<p style="position:fixed;inset:0;background:red">over all</p>',
  '<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>',
  '<form action="https://example.invalid"><button>send</button></form>',
  '<base href="https://example.invalid/">',
  '<a href="javascript:globalThis.pwned=1">click</a>',
  '[click](javascript:globalThis.pwned=1)',
  '[click](JaVaScRiPt:globalThis.pwned=1)',
  '[click](java&#x0A;script:globalThis.pwned=1)',
  '[click](data:text/html,<script>globalThis.pwned=1</script>)',
  '[click](vbscript:x)',
  '<javascript:globalThis.pwned=1>',
  '![x](x "onerror=globalThis.pwned=1")',
  '![x](https://example.invalid/track.png)',
  '[x]: javascript:globalThis.pwned=1\n\n[x]',
  '`<img src=x onerror=globalThis.pwned=1>`',
  '```html\n<script>globalThis.pwned=1</script>',
  '> '.repeat(5000),
  `${'['.repeat(5000)}`,
  `${'*a '.repeat(5000)}`,
  `${'_'.repeat(10_000)}`,
  `${'`'.repeat(10_000)}`,
  `${'- '.repeat(2000)}x`,
  `${'|a'.repeat(500)}|\n${'|-'.repeat(500)}|`,
  `${'<div>'.repeat(3000)}`,
  '<a id=body><a id=cookie name=cookie>',
  '<img name=getElementById>',
]

/**
 * File contents. Most of them begin like a known type, but are truncated or state a wrong size.
 */
export const files: readonly Buffer[] = [
  Buffer.alloc(0),
  Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'),
  Buffer.from('<!DOCTYPE html><script>alert(1)</script>'),
  Buffer.from('%PDF-1.7\n%%EOF'),
  Buffer.from('89504e470d0a1a0a0000000d49484452ffffffffffffffff0806000000', 'hex'),
  Buffer.from('ffd8ffe000104a464946', 'hex'),
  Buffer.from('474946383961ffffffff', 'hex'),
  Buffer.from('504b0304', 'hex'),
  Buffer.from(`504b0506${'0'.repeat(4)}${'f'.repeat(32)}`, 'hex'),
  Buffer.from(
    `504b0304${'ff'.repeat(60)}504b0102${'ff'.repeat(60)}504b0506${'00'.repeat(18)}`,
    'hex',
  ),
  Buffer.from('1f8b0800000000000003', 'hex'),
  Buffer.from('d0cf11e0a1b11ae1', 'hex'),
  Buffer.from('52494646ffffffff57454250', 'hex'),
  Buffer.from('\ufffe\u0000x', 'utf16le'),
  Buffer.alloc(100_000, 0xff),
  Buffer.from(`${'<a>'.repeat(20_000)}`),
]
/** Values of `filename` in a part of a form, with their quotes. */
export const fileNames: readonly string[] = [
  '"../../etc/passwd"',
  '"a\\"b"',
  '"a',
  '""',
  `"${'a'.repeat(3000)}"`,
  `"${'a'.repeat(5000)}"`,
  '"CON.txt"',
  '"a\u0000.html"',
  '"\u202egpj.exe"',
  "UTF-8''%ff%fe",
  '"a"; filename*=UTF-8\'\'%ED%A0%80',
  '"a\r\n b"',
]
/** Request bodies that are sent as forms with the boundary `x`. */
export const forms: readonly string[] = [
  '',
  '--x',
  '--x--',
  '--x\r\n',
  '--x\r\n\r\n\r\n--x--',
  '--x\r\n\r\n--x--',
  '--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nno end',
  '--x\r\nContent-Disposition: form-data\r\n\r\na\r\n--x--',
  '--x\r\nContent-Disposition: attachment; name="file"\r\n\r\na\r\n--x--',
  '--x\nContent-Disposition: form-data; name="file"\n\na\n--x--',
  `--x\r\nA: ${'a'.repeat(10_000)}\r\n\r\na\r\n--x--`,
  '--x\r\n'.repeat(20_000),
  `${'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'.repeat(100)}--x--`,
  `${'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nb\r\n'.repeat(2)}--x--`,
  '--x\r\nContent-Disposition: form-data; name="__proto__"\r\n\r\na\r\n--x--',
  '--x\r\nContent-Disposition: form-data; name="file"\r\nContent-Transfer-Encoding: base64\r\n\r\n!!\r\n--x--',
  '\u0000'.repeat(1000),
]
/** Files in base64, and texts that are not base64. */
export const fileTexts: readonly string[] = [
  ...files.map((file) => file.toString('base64')),
  '=',
  '====',
  'a',
  '!!!!',
  'aGVsbG8',
  '-_-_',
  'data:text/html;base64,PGI+',
  'text/html\r\nX-Injected: 1',
  'image/svg+xml',
  'application/x-'.padEnd(5000, 'x'),
]
