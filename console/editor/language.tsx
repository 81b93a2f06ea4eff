/** A control for choosing between JSON and YAML. */
import type { Language } from './located.ts'
import { editorText as text } from './text.ts'

/** Two toggle buttons, one of which is pressed. */
export const LanguageChoice = ({
  language,
  onLanguage,
}: {
  readonly language: Language
  readonly onLanguage: (language: Language) => void
}) => (
  <div class="form-mode" role="group" aria-label={text.language}>
    {(['json', 'yaml'] as const).map((one) => (
      <button
        key={one}
        type="button"
        aria-pressed={one === language}
        onClick={() => one !== language && onLanguage(one)}
      >
        {text[one]}
      </button>
    ))}
  </div>
)
