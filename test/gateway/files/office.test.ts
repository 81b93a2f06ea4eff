/** Conversion of Office files to Markdown. */
import t from 'tap'
import { inspect } from '../../../gateway/files/file.ts'
import { type Archive, openArchive } from '../../../gateway/files/zip.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import {
  paragraph as p,
  markdownFrom as said,
  contentTypes as types,
  zip,
} from './office-archives.ts'

t.test('a document: headings, paragraphs, lists, tables', async (t) => {
  const cell = (text: string) => `<w:tc>${p(text)}</w:tc>`
  t.equal(
    await said({
      'word/document.xml':
        '<?xml version="1.0"?><w:document><w:body>' +
        `${p('Plan', '<w:pStyle w:val="Heading1"/>')}${p('a &lt; b &amp; &#x43;')}` +
        `${p('')}${p('first', '<w:numPr><w:ilvl w:val="0"/></w:numPr>')}` +
        '<w:p><w:r><w:t>one</w:t><w:tab/><w:t>two</w:t><w:br/><w:t>three</w:t></w:r></w:p>' +
        `<w:tbl><w:tr>${cell('k|')}${cell('v')}</w:tr><w:tr>${cell('1')}</w:tr></w:tbl>` +
        `${p('end')}</w:body></w:document>`,
    }),
    '# Plan\n\na < b & C\n\n- first\n\none\ttwo\nthree\n\n| k\\| | v |\n| --- | --- |\n| 1 |  |\n\nend',
  )
})

t.test('XML in every notation: comments, sections of characters, quotes, entities', async (t) => {
  t.equal(
    await said({
      'word/document.xml':
        `\ufeff<?xml version='1.0'?><!DOCTYPE d [<!ENTITY e "&e;&e;">]><d:document>` +
        `<!-- ${p('hidden')} --><d:p><d:pPr><d:pStyle d:val='Heading2'/></d:pPr>` +
        '<d:r><d:t><![CDATA[a < b]]> > c &e; &#x1F600;&#128512; &apos;&quot;</d:t></d:r></d:p>' +
        '</d:document>',
    }),
    '## a < b > c &e; 😀😀 \'"',
  )
  t.equal(
    await said({
      'xl/workbook.xml':
        '<x:workbook><x:sheets>' +
        `<x:sheet r:id='1' name='a > b &amp; "c"'></x:sheet></x:sheets></x:workbook>`,
      'xl/worksheets/sheet1.xml': `<x:worksheet><x:row><x:c r='B1'><x:v>1</x:v></x:c></x:row></x:worksheet>`,
    }),
    '## a > b & "c"\n\n|  | 1 |\n| --- | --- |',
  )
})

t.test('ill-formed XML: what can be read is read', async (t) => {
  for (const [body, text] of [
    ['<w:p><w:t>a</w:p><w:p><w:t>b</w:t></w:p>', 'a\n\nb'],
    ['<w:p><w:t>a</w:t></w:q></w:p></w:p>', 'a'],
    ['<w:p><w:t>a\u0001&nbsp;& b</w:t></w:p>', 'a\u0001&nbsp;& b'],
    ['<w:p><w:t>a</w:t></w:p><w:p><w:t>b', 'a'],
    ['<w:p a=1 b a=2><w:t>a</w:t></w:p>', 'a'],
    ['a', ''],
    ['', ''],
  ] as const)
    t.equal(await said({ 'word/document.xml': body }), text, body)
})

t.test('a workbook whose sheets were moved: titles by relationship, sheets in order', async (t) => {
  const cellOf = (text: string) =>
    `<worksheet><sheetData><row><c r="A1" t="str"><v>${text}</v></c></row></sheetData></worksheet>`
  t.equal(
    await said({
      'xl/workbook.xml':
        '<workbook><sheets><sheet name="Second" sheetId="2" r:id="rId2"/>' +
        '<sheet name="First" sheetId="1" r:id="rId1"/><sheet name="Again" r:id="rId1"/>' +
        '<sheet name="Outside" r:id="rId3"/></sheets></workbook>',
      'xl/_rels/workbook.xml.rels':
        '<Relationships><Relationship Id="rId1" Target="worksheets/sheet1.xml"/>' +
        '<Relationship Id="rId2" Target="/xl/worksheets/sheet2.xml"/>' +
        '<Relationship Id="rId3" Target="../word/document.xml"/></Relationships>',
      'xl/worksheets/sheet1.xml': cellOf('one'),
      'xl/worksheets/sheet2.xml': cellOf('two'),
    }),
    '## Second\n\n| two |\n| --- |\n\n## First\n\n| one |\n| --- |',
  )
})

t.test('a workbook: sheets with their names, cells in their columns', async (t) => {
  t.equal(
    await said({
      'xl/workbook.xml':
        '<workbook><sheets><sheet name="Costs &amp; more" sheetId="1" r:id="rId1"/>' +
        '<sheet name="Empty" sheetId="2"/></sheets></workbook>',
      'xl/sharedStrings.xml':
        '<sst><si><t>item</t></si><si><r><t>co</t></r><r><t>st</t></r></si></sst>',
      'xl/worksheets/sheet1.xml':
        '<worksheet><sheetData>' +
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row>' +
        '<row r="2"><c r="A2" t="inlineStr"><is><t>pen</t></is></c>' +
        '<c r="B2" t="b"><v>1</v></c><c r="C2"><f>1+1</f><v>2</v></c></row>' +
        '</sheetData></worksheet>',
      'xl/worksheets/sheet2.xml': '<worksheet/>',
    }),
    '## Costs & more\n\n| item |  | cost |\n| --- | --- | --- |\n| pen | TRUE | 2 |',
  )
})

t.test('a presentation: its slides in order', async (t) => {
  const slide = (...texts: string[]) =>
    `<p:sld>${texts.map((text) => `<a:p><a:r><a:t>${text}</a:t></a:r></a:p>`).join('')}</p:sld>`
  t.equal(
    await said({
      'ppt/presentation.xml': '<p/>',
      'ppt/slides/slide10.xml': slide('last'),
      'ppt/slides/slide2.xml': slide('second', '', 'line'),
      'ppt/slides/slide1.xml': slide('first'),
    }),
    '## Slide 1\n\nfirst\n\n## Slide 2\n\nsecond\n\nline\n\n## Slide 3\n\nlast',
  )
})

t.test('the kind of an archive is detected, and unsafe archives are not opened', async (t) => {
  const kind = async (bytes: Buffer) => {
    const found = await inspect(bytes, 'a.docx', undefined)
    return isRefusal(found)
      ? found.refused
      : [found.facts.mime_type.split('.').at(-2), found.facts.conversion?.state]
  }
  t.same(await kind(zip({ ...types, 'word/document.xml': p('x') })), ['wordprocessingml', 'ready'])
  t.same(await kind(zip({ ...types, 'xl/workbook.xml': '<a/>' })), ['spreadsheetml', 'ready'])
  t.same(
    await kind(zip({ ...types, 'ppt/presentation.xml': '<a/>' })),
    ['presentationml', 'failed'],
    'it has no slides',
  )
  t.same(
    await kind(zip({ ...types, 'word/document.xml': p('x') }, 1)),
    ['wordprocessingml', 'failed'],
    'a member is larger than its stated size',
  )
  t.equal(
    await kind(zip({ ...types, 'word/document.xml': p('x'), 'word/vbaProject.bin': 'x' })),
    'payload_too_large',
  )
  t.equal(
    await kind(zip({ ...types, 'word/document.xml': p('x') }, 100_000_000)),
    'payload_too_large',
  )
  t.equal(await kind(zip({ 'word/document.xml': p('x') })), 'bad_request')
  t.equal(await kind(zip({ 'readme.txt': 'x' })), 'bad_request')
})

t.test('the bound of a member applies whether it is compressed or stored', async (t) => {
  const MOST = 16 * 1_048_576
  const lengthOf = async (length: number, stored: boolean, lie?: number) => {
    const archive = openArchive(zip({ a: 'x'.repeat(length) }, lie, stored)) as Archive
    return (await archive.text('a'))?.length
  }
  for (const stored of [false, true]) {
    t.equal(await lengthOf(MOST, stored), MOST)
    t.equal(await lengthOf(MOST + 1, stored), undefined)
    t.equal(await lengthOf(100, stored, 99), undefined, 'it is larger than its directory states')
    t.equal(await lengthOf(100, stored, 200), 100)
  }
})
