/** Starts the console in the document that `gateway/pages/console.ts` serves. */
import { render } from 'preact'
import { keepFocus } from './focus/keep.ts'
import { startRouter } from './router/router.ts'
import { isConsolePath } from './router/routes.ts'
import { App } from './shell/app.tsx'
import { preloadPage } from './shell/outlet.tsx'
import { followSession, loadSession } from './shell/session.ts'
import { applyTheme } from './shell/theme.ts'
import { applyLanguage } from './text/language.ts'

applyTheme()
applyLanguage()
startRouter(isConsolePath)
followSession()
keepFocus()
void loadSession()
preloadPage(location.pathname, new URLSearchParams(location.search))
const root = document.getElementById('app')
if (!root) throw new Error('the document has no element #app')
root.textContent = ''
render(<App />, root)
