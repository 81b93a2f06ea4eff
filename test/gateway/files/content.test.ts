/** How stored files are sent: headers, conditional requests and ranges. */
import fc from 'fast-check'
import t from 'tap'
import { planContent } from '../../../gateway/files/content.ts'

const SHA = 'ab'.repeat(32)
const file = { name: 'report.txt', mime_type: 'text/plain', size_bytes: 10, sha256: SHA }
const plan = (headers: Readonly<Record<string, string>> = {}, of = {}, method = 'GET') =>
  planContent({ ...file, ...of }, { method, further: (name) => headers[name] })

t.test('a file that can contain scripts is a download', async (t) => {
  t.match(plan(), {
    status: 200,
    start: 0,
    end: 10,
    type: 'text/plain; charset=utf-8',
    headers: {
      'Content-Disposition': "inline; filename*=utf-8''report.txt",
      ETag: `"sha256-${SHA}"`,
      'Accept-Ranges': 'bytes',
      Digest: `sha-256=${Buffer.from(SHA, 'hex').toString('base64')}`,
    },
  })
  for (const mime_type of ['text/html', 'image/svg+xml', 'application/xml', 'constructor'])
    t.match(plan({}, { mime_type, name: "a/b/it's (ü).svg" }), {
      type: 'application/octet-stream',
      headers: { 'Content-Disposition': "attachment; filename*=utf-8''it%27s%20%28%C3%BC%29.svg" },
    })
  t.match(plan({}, { name: '\ud800' }).headers, {
    'Content-Disposition': "inline; filename*=utf-8''%EF%BF%BD",
  })
  for (const [name, value] of [
    ['../../etc/passwd', 'passwd'],
    ['..\\\\host\\share\\run.bat', 'run.bat'],
    ['\u202egnp.\u2066exe\r\nX: 1', 'gnp.exeX%3A%201'],
    ['"; filename=evil.exe', '%22%3B%20filename%3Devil.exe'],
    ['../', ''],
  ])
    t.equal(
      plan({}, { name }).headers['Content-Disposition'],
      `inline; filename*=utf-8''${value}`,
      JSON.stringify(name),
    )
})

t.test('a file that a browser displays is sandboxed, and its type is not guessed', async (t) => {
  t.match(plan({}, { mime_type: 'application/pdf' }), {
    type: 'application/pdf',
    headers: {
      'Content-Security-Policy': "default-src 'none'; sandbox",
      'X-Content-Type-Options': 'nosniff',
      'Content-Disposition': "inline; filename*=utf-8''report.txt",
    },
  })
})

t.test('a client that has the bytes gets none', async (t) => {
  for (const value of [`"sha256-${SHA}"`, `W/"sha256-${SHA}"`, `"x", "sha256-${SHA}"`, '*'])
    t.match(plan({ 'if-none-match': value, range: 'bytes=0-1' }), { status: 304, end: 0 }, value)
  for (const value of ['"x"', SHA, ''])
    t.match(plan({ 'if-none-match': value }), { status: 200, end: 10 }, value)
})

t.test('a client that expects another file gets none', async (t) => {
  const tag = `"sha256-${SHA}"`
  for (const value of [tag, `"x", ${tag}`, '*'])
    t.match(plan({ 'if-match': value, range: 'bytes=2-' }), { status: 206, start: 2 }, value)
  for (const value of ['"x"', `W/${tag}`, SHA])
    t.match(plan({ 'if-match': value, 'if-none-match': '*' }), { status: 412, end: 0 }, value)
  t.match(plan({ 'if-match': tag }, { sha256: undefined }), { status: 412 })
  t.match(plan({ 'if-match': '*' }, { sha256: undefined }), { status: 200 })
})

t.test(
  'the headers of the whole file are sent for HEAD, whatever range is requested',
  async (t) => {
    for (const range of ['bytes=2-4', 'bytes=99-']) {
      const { status, end, headers } = plan({ range }, {}, 'HEAD')
      t.match([status, end, headers['Content-Range']], [200, 10, undefined], range)
    }
  },
)

t.test('one range is sent alone; several ranges are answered with the whole file', async (t) => {
  const cases: readonly (readonly [string, number, number])[] = [
    ['bytes=0-0', 0, 1],
    ['bytes=2-4', 2, 5],
    ['bytes=2-', 2, 10],
    ['bytes=2-99', 2, 10],
    ['bytes=-3', 7, 10],
    ['bytes=-99', 0, 10],
    ['bytes=2-99999999999999999999', 2, 10],
    [`bytes=0-${'9'.repeat(400)}`, 0, 10],
    ['bytes=-99999999999999999999', 0, 10],
    ['BYTES= 9-9 ', 9, 10],
  ]
  for (const [range, start, end] of cases)
    t.match(
      plan({ range }),
      { status: 206, start, end, headers: { 'Content-Range': `bytes ${start}-${end - 1}/10` } },
      range,
    )
  const beyond = ['bytes=99999999999999999999-', 'bytes=9007199254740993-9007199254740993']
  for (const range of ['bytes=10-', 'bytes=99-100', 'bytes=-0', ...beyond])
    t.match(plan({ range }), { status: 416, headers: { 'Content-Range': 'bytes */10' } }, range)
  for (const range of ['bytes=4-2', 'bytes=0-1,3-4', 'items=0-1', 'bytes=', 'bytes=-', 'x'])
    t.match(plan({ range }), { status: 200, start: 0, end: 10 }, range)
  t.match(plan({ range: 'bytes=0-' }, { size_bytes: 0 }), { status: 416 })
  t.match(plan({ range: 'bytes=-5' }, { size_bytes: 0 }), { status: 200, end: 0 })
})

t.test('a range of another version of the file is answered with the whole file', async (t) => {
  const range = 'bytes=0-1'
  t.match(plan({ range, 'if-range': `"sha256-${SHA}"` }), { status: 206 })
  t.match(plan({ range, 'if-range': '"x"' }), { status: 200 })
  t.match(plan({ range, 'if-range': `W/"sha256-${SHA}"` }), { status: 200 })
})

t.test('the planned bytes are always within the file', async () => {
  fc.assert(
    fc.property(
      fc.nat({ max: 1000 }),
      fc.oneof(
        fc.tuple(fc.nat(), fc.option(fc.nat())).map(([a, b]) => `bytes=${a}-${b ?? ''}`),
        fc.nat().map((n) => `bytes=-${n}`),
        fc.string(),
      ),
      (size_bytes, range) => {
        const { status, start, end } = plan({ range }, { size_bytes })
        return (
          start >= 0 &&
          end <= size_bytes &&
          (status === 206 ? start < end : status !== 200 || end - start === size_bytes)
        )
      },
    ),
    { numRuns: 1000 },
  )
})
