/** The entry point of the inspection, which a browser test bundles and injects into pages. */
import { look } from './inspect.ts'
import { waitForData, walk } from './walk.ts'

Object.assign(globalThis, { inspection: { look, settle: waitForData, walk } })
