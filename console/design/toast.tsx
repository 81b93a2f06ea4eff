/** Shows the short messages of `notify.ts`. */
import { IconButton } from './button.tsx'
import { closeToast, toasts } from './notify.ts'
import { designText as text } from './text.ts'

/** The container of the messages, rendered once per page. */
export const Toasts = () => (
  <div class="toasts" role="status" aria-live="polite">
    {toasts.value.map(({ id, kind, message, detail }) => (
      <div key={id} class={`notice toast ${kind}`}>
        <div class="grow">
          <div class="user-text">{message}</div>
          {detail && <pre class="small user-text">{detail}</pre>}
        </div>
        <IconButton icon="close" label={text.close} onClick={() => closeToast(id)} />
      </div>
    ))}
  </div>
)
