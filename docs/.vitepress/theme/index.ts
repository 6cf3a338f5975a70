import DefaultTheme from "vitepress/theme";
import { defineComponent, h, onMounted, ref, useId, watch, type App } from "vue";
import { useData } from "vitepress";

/** A diagram of mermaid's language, drawn in the browser in the colors of the page. */
const MermaidDiagram = defineComponent({
  props: { source: { type: String, required: true } },
  setup({ source }) {
    const svg = ref("");
    const { isDark } = useData();
    const id = useId();
    const draw = async () => {
      const { default: mermaid } = await import("mermaid");
      const theme = isDark.value ? "dark" : "neutral";
      // The page's line height is larger than the one that mermaid measures with, and would cut the last line of a label.
      mermaid.initialize({ startOnLoad: false, theme, themeCSS: "p { line-height: 1.5 }" });
      svg.value = (await mermaid.render(`diagram-${id}`, decodeURIComponent(source))).svg;
    };
    onMounted(draw);
    watch(isDark, draw);
    return () => h("div", { innerHTML: svg.value });
  },
});

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }: { readonly app: App }) => app.component("MermaidDiagram", MermaidDiagram),
};
