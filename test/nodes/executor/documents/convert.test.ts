/** Conversion of Office files to Markdown. */
import t from 'tap'
import { markdownOf } from '../../../../nodes/executor/documents/convert.ts'
import {
  contentTypes,
  documentXml,
  markdownFrom,
  paragraph as p,
  relationships,
  WORD,
  zip,
} from './office.ts'

const document = (body: string, more = {}) =>
  markdownFrom({ 'word/document.xml': documentXml(body), ...more })
const cell = (text: string) => `<w:tc>${p(text)}</w:tc>`

t.test('a document: headings, paragraphs, tables', async (t) => {
  t.equal(
    await document(
      `${p('The title', '<w:pStyle w:val="Title"/>')}` +
        `${p('Plan', '<w:pStyle w:val="Heading1"/>')}${p('a &lt; b &amp; &#x43;')}${p('')}` +
        '<w:p><w:r><w:t>one</w:t><w:tab/><w:t>two</w:t><w:br/><w:t>three</w:t></w:r></w:p>' +
        `<w:tbl><w:tr>${cell('k|')}${cell('v')}</w:tr><w:tr>${cell('1')}</w:tr></w:tbl>` +
        p('end'),
    ),
    '# The title\n\n# Plan\n\na < b & C\n\none\ttwo\nthree\n\n' +
      '| k\\| | v |\n| --- | --- |\n| 1 |  |\n\nend',
  )
})

t.test('a document: nested lists', async (t) => {
  const level = (index: number, format: string) =>
    `<w:lvl w:ilvl="${index}"><w:numFmt w:val="${format}"/></w:lvl>`
  const numbering =
    `<w:numbering xmlns:w="${WORD}"><w:abstractNum w:abstractNumId="0">` +
    `${level(0, 'bullet')}${level(1, 'decimal')}</w:abstractNum>` +
    '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>'
  const item = (text: string, depth = 0) =>
    p(text, `<w:numPr><w:ilvl w:val="${depth}"/><w:numId w:val="1"/></w:numPr>`)
  t.equal(
    await document(p('before') + item('a') + item('b', 1) + item('c', 1) + item('d') + p('after'), {
      'word/numbering.xml': numbering,
    }),
    'before\n\n- a\n  1. b\n  2. c\n- d\n\nafter',
  )
})

t.test('a document: emphasis, links, notes, alternative text of pictures', async (t) => {
  const run = (text: string, style: string) =>
    `<w:r><w:rPr>${style}</w:rPr><w:t xml:space="preserve">${text}</w:t></w:r>`
  const drawing = 'http://schemas.openxmlformats.org/drawingml/2006'
  const picture =
    `<w:r><w:drawing><wp:inline xmlns:wp="${drawing}/wordprocessingDrawing">` +
    `<wp:docPr id="1" descr="A chart"/><a:graphic xmlns:a="${drawing}/main"><a:graphicData>` +
    `<pic:pic xmlns:pic="${drawing}/picture"><pic:blipFill><a:blip r:embed="rId2"/>` +
    '</pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>'
  const notes =
    `<w:footnotes xmlns:w="${WORD}"><w:footnote w:id="7">${p('A note.')}</w:footnote>` +
    '</w:footnotes>'
  t.equal(
    await document(
      `<w:p>${run('bold ', '<w:b/>')}${run('slanted', '<w:i/>')}${run(' and plain ', '')}` +
        `${run('old', '<w:strike/>')}</w:p>` +
        `<w:p><w:hyperlink r:id="rId1"><w:r><w:t>a link</w:t></w:r></w:hyperlink>` +
        '<w:r><w:footnoteReference w:id="7"/></w:r></w:p>' +
        `<w:p>${picture}</w:p>`,
      {
        'word/footnotes.xml': notes,
        'word/_rels/document.xml.rels': relationships(
          ['rId1', 'hyperlink', 'https://example.org/a'],
          ['rId2', 'image', 'media/image1.png'],
        ),
      },
    ),
    '**bold** *slanted* and plain ~~old~~\n\n[a link](https://example.org/a)[^1]\n\n' +
      '[picture: A chart]\n\n[^1]: A note.',
  )
})

t.test('a document: merged cells, and a table inside of a table', async (t) => {
  const inner = `<w:tbl><w:tr>${cell('x')}${cell('y')}</w:tr></w:tbl>`
  t.equal(
    await document(
      `<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>${p('wide')}</w:tc></w:tr>` +
        `<w:tr>${cell('left')}<w:tc>${inner}${p('below')}</w:tc></w:tr></w:tbl>`,
    ),
    '| wide |  |\n| --- | --- |\n| left | x y below |',
  )
})

t.test('XML in every notation: comments, CDATA sections, quotes, characters', async (t) => {
  t.equal(
    await markdownFrom({
      'word/document.xml':
        `\ufeff<?xml version='1.0'?><d:document xmlns:d='${WORD}'><d:body>` +
        `<!-- ${p('hidden')} --><d:p><d:pPr><d:pStyle d:val='Heading2'/></d:pPr>` +
        '<d:r><d:t>a &lt; b > c &#x1F600;&#128512; &apos;&quot;</d:t></d:r></d:p>' +
        '</d:body></d:document>',
    }),
    '## a < b > c 😀😀 \'"',
  )
  t.equal(
    await markdownFrom({
      'xl/workbook.xml':
        '<x:workbook><x:sheets>' +
        `<x:sheet r:id='1' name='a > b &amp; "c"'></x:sheet></x:sheets></x:workbook>`,
      'xl/worksheets/sheet1.xml':
        "<x:worksheet><x:row><x:c r='B1'><x:v><![CDATA[a < b]]></x:v></x:c></x:row>" +
        '</x:worksheet>',
    }),
    '## a > b & "c"\n\n|  | a < b |\n| --- | --- |',
  )
})

t.test('a workbook whose sheets were moved: titles by relationship, sheets in order', async (t) => {
  const cellOf = (text: string) =>
    `<worksheet><sheetData><row><c r="A1" t="str"><v>${text}</v></c></row></sheetData></worksheet>`
  t.equal(
    await markdownFrom({
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
    await markdownFrom({
      'xl/workbook.xml':
        '<workbook><sheets><sheet name="Costs &amp; more" sheetId="1" r:id="rId1"/>' +
        '<sheet name="Empty" sheetId="2"/></sheets></workbook>',
      'xl/sharedStrings.xml':
        '<sst><si><t>item</t></si><si><r><t>co</t></r><r><t>st</t></r><rPh><t>x</t></rPh></si></sst>',
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

t.test('a large sheet: a sentence says which rows and columns are left out', async (t) => {
  const row = '<row><c r="A1"><v>1</v></c><c r="GS1"><v>2</v></c></row>'
  const text = await markdownFrom({
    'xl/workbook.xml': '<workbook/>',
    'xl/worksheets/sheet1.xml': `<worksheet>${row.repeat(1200)}</worksheet>`,
  })
  t.match(
    text,
    /\n\n\[The sheet has 1,200 rows and 201 columns\. Only \d+ rows and 200 columns are shown\.\]$/,
  )
  const one = '<row><c r="A1"><v>1</v></c></row>'
  const narrow = await markdownFrom({
    'xl/workbook.xml': '<workbook/>',
    'xl/worksheets/sheet1.xml': `<worksheet>${one.repeat(1200)}</worksheet>`,
  })
  t.match(narrow, /\[The sheet has 1,200 rows and 1 column\. Only 1,000 rows and 1 column are/)
  t.equal(narrow.split('\n').filter((line) => line === '| 1 |').length, 1000)
})

const slide = (...texts: string[]) =>
  `<p:sld>${texts.map((text) => `<a:p><a:r><a:t>${text}</a:t></a:r></a:p>`).join('')}</p:sld>`
t.test('a presentation: its slides in order of their numbers', async (t) => {
  t.equal(
    await markdownFrom({
      'ppt/presentation.xml': '<p/>',
      'ppt/slides/slide10.xml': slide('last'),
      'ppt/slides/slide2.xml': slide('second', '', 'line'),
      'ppt/slides/slide1.xml': slide('first'),
    }),
    '## Slide 1\n\nfirst\n\n## Slide 2\n\nsecond\n\nline\n\n## Slide 3\n\nlast',
  )
})

t.test('a presentation: order by relationship, titles, tables, notes', async (t) => {
  const shape = (type: string, text: string) =>
    `<p:sp><p:nvSpPr><p:nvPr><p:ph type="${type}"/></p:nvPr></p:nvSpPr><p:txBody>` +
    `<a:p><a:r><a:t>${text}</a:t></a:r></a:p></p:txBody></p:sp>`
  const notes = shape('sldNum', '1') + shape('body', 'Say hello.')
  const box = (text: string) =>
    `<a:tc><a:txBody><a:p><a:r><a:t>${text}</a:t></a:r></a:p></a:txBody></a:tc>`
  t.equal(
    await markdownFrom({
      'ppt/presentation.xml':
        '<p:presentation><p:sldIdLst><p:sldId r:id="rId2" id="256"/><p:sldId id="257" r:id="rId1"/>' +
        '</p:sldIdLst></p:presentation>',
      'ppt/_rels/presentation.xml.rels': relationships(
        ['rId1', 'slide', 'slides/slide1.xml'],
        ['rId2', 'slide', 'slides/slide2.xml'],
      ),
      'ppt/slides/slide1.xml': slide('later'),
      'ppt/slides/slide2.xml':
        `<p:sld>${shape('ctrTitle', 'Welcome')}${shape('body', 'text')}` +
        `<a:tbl><a:tr>${box('k')}${box('v')}</a:tr></a:tbl></p:sld>`,
      'ppt/slides/_rels/slide2.xml.rels': relationships([
        'rId1',
        'notesSlide',
        '../notesSlides/notesSlide1.xml',
      ]),
      'ppt/notesSlides/notesSlide1.xml': `<p:notes>${notes}</p:notes>`,
    }),
    '## Slide 1: Welcome\n\ntext\n\n| k | v |\n| --- | --- |\n\nNotes:\n\nSay hello.\n\n' +
      '## Slide 2\n\nlater',
  )
})

t.test('a file without text', async (t) => {
  t.equal(await document(p('')), '[The file contains no text.]')
  t.equal(await markdownFrom({ 'xl/workbook.xml': '<workbook/>' }), '[The file contains no text.]')
})

t.test('archives of other programs: stored members, and sizes after the content', async (t) => {
  const members = { ...contentTypes, 'word/document.xml': documentXml(p('hello')) }
  t.equal(await markdownOf(zip(members, { stored: true })), 'hello')
  t.equal(await markdownOf(zip(members, { streamed: true })), 'hello')
})
