/** UI strings of the graph of a workflow. */
import { messages } from '../text/messages.ts'

export const graphText = messages('graph', {
  label: 'Steps of the workflow',
  help:
    'Drag to move, turn the wheel to zoom. With the keyboard: arrow keys move, plus and minus ' +
    'zoom, 0 shows everything.',
  zoomIn: 'Zoom in',
  zoomOut: 'Zoom out',
  fit: 'Show everything',
  cleanup: 'Cleanup',
  items: (label: string) => `For each item of ${label}`,
  branches: (label: string) => `Branches of ${label}`,
  condition: (condition: string) => `Only if ${condition}`,
  then: (names: string) => `Then ${names}.`,
  last: 'This is the end.',
  failed: 'The graph could not be drawn.',
})
