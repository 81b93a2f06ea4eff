/** The conversion of HTML to plain text: what is visible in a mail program, in linear time. */
import t from 'tap'
import { plainTextOf } from '../../../nodes/mail/plain-text.ts'

const text = (html: string, max = 100_000): string => plainTextOf(html, max)

t.test('tags become line breaks and spaces, or nothing within a word', (t) => {
  const cases: Readonly<Record<string, string>> = {
    '<p>Fish &amp; chips</p><br>2 &lt; 3': 'Fish & chips\n2 < 3',
    'H<b>ell</b>o<span>,</span> you': 'Hello, you',
    '<td>a</td><td>b</td>': 'a b',
    'one\n  line <br>\n next<BR/>last': 'one line\nnext\nlast',
    '<pre>a  b\n c</pre>': 'a b\nc',
    '<ul><li>a<li>b</ul>c': 'a\nb\nc',
    '<a title="a > b">c</a>': 'c',
    '1 < 2 <3 and <': '1 < 2 <3 and <',
    'a<img alt="b">c<p': 'a c',
  }
  for (const [html, expected] of Object.entries(cases)) t.equal(text(html), expected, html)
  t.end()
})

t.test('scripts, styles and comments are omitted', (t) => {
  t.equal(text('<script>x("</p>")</script>a<STYLE >p{}</style>b'), 'ab')
  t.equal(
    text(`${'İ'.repeat(200)}<style>secret</style>${'İ'.repeat(9)}<script>it</script>`),
    'İ'.repeat(209),
  )
  t.equal(text('a<!--[if mso]><p>b > c</p><![endif]-->d<!doctype html><?xml x?>e'), 'ade')
  t.equal(text('a<script>b'), 'a', 'without an end')
  t.equal(text('a<style/>b</style>c'), 'ac')
  t.end()
})

t.test('character references become characters', (t) => {
  t.equal(text('&#233;&#xe9;&eacute; &euro;&nbsp;5 &#x1F600;&rsquo;s &AMP'), 'ééé € 5 😀’s &')
  t.equal(text('&unknown; a&b; &#xd800;&#0;'), '&unknown; a&b; \ufffd\ufffd')
  t.equal(text('&lt;b&gt;', 100), '<b>', 'references are not tags')
  t.end()
})

t.test('long and nested HTML takes linear time', (t) => {
  for (const html of ['<div>', '<b>', '<', '<script', '<p a="', '&amp;', '<!--', '&', '<pre>\n'])
    t.ok(text(html.repeat(200_000)).length <= 200_000, html)
  t.equal(text('a<br>'.repeat(100), 20).length, 21)
  t.end()
})
