/**
 * Serves the chat page: an empty document, its style sheet, and the modules of its program. The
 * program itself is in `client/chat`. The document is the same for all users. The program
 * authenticates its own requests, like any client.
 */
import { createHash } from 'node:crypto'
import { productName } from '../../protocol/naming.ts'
import type { Answer } from '../http/respond.ts'
import type { GatewaySettings } from '../ports.ts'
import { escapeHtml } from './answer/page.ts'

/** Path of the program's entry module. */
export const CHAT = 'client/chat/main.ts'

const style = `:root{color-scheme:light dark;--line:#767676;--soft:#f1f3f5;--note:#4d5358;--accent:#0b57d0;
--on:#fff;--bad:#b3261e;--good:#146c2e;background:Canvas;color:CanvasText;font:1rem/1.5 system-ui,sans-serif}
@media (prefers-color-scheme:dark){:root{--line:#8c9196;--soft:#24282c;--note:#b6bcc2;--accent:#a8c7fa;
--on:#062e6f;--bad:#ffb4ab;--good:#7fda98}}
body{max-width:48rem;margin:0 auto;padding:0 1rem}
header,.bar,.line,.buttons,.title{display:flex;gap:.75rem;align-items:center;flex-wrap:wrap}
header{justify-content:space-between;border-bottom:1px solid var(--line)}
h1{font-size:1.2rem}h2{font-size:1.15rem;overflow-wrap:anywhere}h3{font-size:1rem;margin:.25rem 0}
a{color:var(--accent)}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.text,pre{white-space:pre-wrap;overflow-wrap:anywhere}
pre{max-height:20rem;overflow:auto;margin:.25rem 0;padding:.5rem;background:Canvas;border-radius:.3rem;font-size:.85rem}
.markdown{white-space:normal}.plain{white-space:pre-wrap}
.markdown>*,.markdown :is(li,blockquote)>*{margin:.5rem 0}.markdown>:first-child{margin-top:0}
.markdown>:last-child{margin-bottom:0}
.markdown :is(p,li,h3,h4,h5,h6,td,th){unicode-bidi:plaintext}.markdown :is(a,code){unicode-bidi:isolate}
.markdown :is(ul,ol){padding-left:1.5rem}.markdown blockquote{padding-left:.75rem;border-left:4px solid var(--line)}
.markdown pre[data-language]::before{content:attr(data-language);display:block;color:var(--note)}
.table{overflow:auto}table{border-collapse:collapse}
th,td{padding:.2rem .6rem;border:1px solid var(--line);text-align:left}
.table .center{text-align:center}.table .right{text-align:right}
.conversation{list-style:none;margin:1rem 0;padding:0}
.conversation>li{margin:.75rem 0;padding:.5rem .9rem;border-radius:.6rem}
.message.user{background:var(--soft);margin-left:3rem}
.message.assistant{border:1px solid var(--line)}
.message[aria-busy=true] .blocks::after{content:'\\2026';color:var(--note)}
.question{border:2px solid var(--accent)}
.end{color:var(--note);font-size:.9rem;text-align:center}.end.failed{color:var(--bad);font-weight:600}
.speaker{margin:0;font-size:.85rem;color:var(--note)}.speaker time{margin-left:.5rem}
.tool{margin:.5rem 0;padding:.4rem .75rem;border-left:4px solid var(--line);background:var(--soft);border-radius:.3rem}
.title{margin:0}.thinking{color:var(--note)}
.badge{font-size:.85rem;padding:0 .5rem;border:1px solid var(--line);border-radius:1rem}
.badge[data-status=error]{color:var(--bad);border-color:var(--bad)}
.badge[data-status=ok]{color:var(--good);border-color:var(--good)}
.note{color:var(--note);font-size:.9rem}
.fault{color:var(--bad);font-weight:600}.fault:empty,.note:empty{display:none}
.files{display:flex;flex-wrap:wrap;gap:.5rem;list-style:none;margin:.5rem 0;padding:0}
.files[hidden]{display:none}
.chip{display:flex;gap:.5rem;align-items:center;max-width:100%;box-sizing:border-box;
padding:.1rem .3rem .1rem .75rem;border:1px solid var(--line);border-radius:1rem}
.chip .name{overflow:hidden;text-overflow:ellipsis}.chip button{padding:0 .6rem;border:0}
.preview{display:block;height:12rem;max-width:100%;object-fit:contain;object-position:left}
.uploads{margin:.5rem 0}
.panel{margin:.5rem 0}.workspace{margin:.25rem 0;padding-left:1.2rem;max-height:20rem;overflow:auto}
.workspace li{overflow-wrap:anywhere}
.card{max-width:32rem}.sessions{padding-left:1.2rem}
label{display:block;margin:.6rem 0 .2rem}label.choice{margin:.2rem 0}
fieldset{border:1px solid var(--line);border-radius:.4rem}
input:not([type=radio],[type=checkbox]),textarea,select{width:100%;box-sizing:border-box;font:inherit;
padding:.5rem;border:1px solid var(--line);border-radius:.4rem}
.line>textarea,.line>select{flex:1;width:auto;min-width:10rem}
button{font:inherit;padding:.5rem 1.1rem;border:1px solid var(--accent);border-radius:.4rem;
background:var(--accent);color:var(--on);cursor:pointer}
button.link{padding:0;border:0;background:transparent;color:var(--accent);text-decoration:underline;
text-align:left;overflow-wrap:anywhere}
button.other{background:transparent;color:var(--accent)}button:disabled{opacity:.6;cursor:default}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.composer{position:sticky;bottom:0;padding:.25rem 0 .75rem;background:Canvas;border-top:1px solid var(--line)}`

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "connect-src 'self'",
  'img-src data: blob:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')
const common = { 'Referrer-Policy': 'no-referrer', 'X-Content-Type-Options': 'nosniff' } as const

const page = (
  product: string,
  [entry = '', ...others]: readonly string[],
): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${product} chat</title>
<link rel="icon" href="data:,">
<style>${style}</style>
<script type="module" src="${entry}"></script>
${others.map((address) => `<link rel="modulepreload" href="${address}">`).join('\n')}
</head>
<body>
<header><h1>${product} chat</h1></header>
<main><noscript><p>This page needs JavaScript.</p></noscript></main>
<p id="announcements" class="unseen" role="status" aria-live="polite"></p>
</body>
</html>
`

/**
 * Creates the handlers of the chat page and its modules, by path.
 * @param modules the page's modules by address, with the entry module first. Without modules there
 * are no handlers.
 */
export function openChat(
  { brand }: GatewaySettings,
  modules: ReadonlyMap<string, string>,
): Readonly<Record<string, () => Promise<Answer>>> {
  if (modules.size === 0) return {}
  const text = page(escapeHtml(productName(brand)), [...modules.keys()])
  // Not cached, because an upgraded gateway serves other modules at the same addresses.
  const headers = { ...common, 'Cache-Control': 'no-store' }
  const shown = async (): Promise<Answer> => ({
    status: 200,
    text,
    type: 'text/html; charset=utf-8',
    headers: { ...headers, 'Content-Security-Policy': policy, 'X-Robots-Tag': 'noindex' },
  })
  return {
    '/chat': shown,
    ...Object.fromEntries(
      [...modules].map(([address, code]) => [
        address,
        async (): Promise<Answer> => ({
          status: 200,
          text: code,
          type: 'text/javascript; charset=utf-8',
          headers,
        }),
      ]),
    ),
  }
}
