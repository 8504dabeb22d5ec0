int main(void)
{
}
